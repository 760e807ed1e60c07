import { statSync } from "node:fs";
import { DatabaseSync } from "@photostructure/sqlite";
import { getContractAddress, type Hex, hexToBytes, numberToHex, toHex, type TransactionReceipt } from "viem";
import { expect, it, vi } from "vitest";
import type { CommittedBlock } from "./blocks/committed-block.ts";
import type { EmbeddedChain } from "./embedded-chain.ts";
import { LOG_BYTES_MAX } from "./limits.ts";
import { ProviderRpcError } from "./rpc-error.ts";
import type { BlockAnswer } from "./testing/answers.ts";
import { useChainFolder } from "./testing/chain-folder.ts";
import { CHAIN_ID, FEES, SIGNER } from "./testing/client.ts";
import { yardstickBytecode } from "./testing/yardstick.generated.ts";
import { encodeCall } from "./testing/yardstick.ts";

const folder = useChainFolder();

function ask<Answer = string>(chain: EmbeddedChain, method: string, ...params: unknown[]): Promise<Answer> {
  return chain.request({ method, params }) as Promise<Answer>; // The test names the type that the method returns.
}

/** Waits until the blocks hold `count` transactions. */
function untilSealed(blocks: readonly CommittedBlock[], count: number): Promise<boolean> {
  return vi.waitUntil(() => blocks.flatMap(({ transactions }) => transactions).length === count, { timeout: 10_000 });
}

/** Creation code of a contract: a call with a and b fills the slots from a to b - 1. */
const SLOT_WRITER: Hex = "0x60188060095f395ff36020355f355b818110156016578080556001016005565b00";

function sendCall(
  chain: EmbeddedChain,
  call: { readonly nonce: number; readonly to?: Hex; readonly data: Hex },
): Promise<void> {
  const signed = SIGNER.signTransaction({ type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 20_000_000n, ...call });
  return signed.then((raw) => chain.submit(hexToBytes(raw)));
}

it("follow passes each block and its logs to the owner, with the values that RPC returns later", async () => {
  await using chain = await folder.start();
  const blocks: CommittedBlock[] = [];
  chain.follow((block) => blocks.push(block));
  await sendCall(chain, { nonce: 0, data: yardstickBytecode });
  const to = getContractAddress({ from: SIGNER.address, nonce: 0n });
  const [data, failing] = [
    encodeCall({ functionName: "emitMany", args: [3n] }),
    encodeCall({ functionName: "failSilently" }),
  ];
  await Promise.all([data, failing, data].map((each, index) => sendCall(chain, { nonce: index + 1, to, data: each })));
  await untilSealed(blocks, 4);
  for (const { hash, header, transactions } of blocks) {
    const expected = await ask<BlockAnswer & { transactions: Hex[] }>(
      chain,
      "eth_getBlockByNumber",
      numberToHex(header.number),
      false,
    );
    expect(toHex(hash)).toBe(expected.hash);
    expect(transactions.map((each) => toHex(each.hash))).toEqual(expected.transactions);
    for (const each of transactions) {
      const receipt = await ask<TransactionReceipt>(chain, "eth_getTransactionReceipt", toHex(each.hash));
      expect(each.isSuccess).toBe(receipt.status === ("0x1" as string));
      const logs = each.logs.map((log, index) => ({
        address: log.address,
        topics: log.topics,
        data: toHex(log.data),
        logIndex: numberToHex(each.firstLogIndex + index),
      }));
      expect(receipt.logs).toMatchObject(logs);
      expect(receipt.logs).toHaveLength(logs.length);
    }
  }
  expect(blocks.flatMap(({ transactions }) => transactions.map(({ logs }) => logs.length))).toEqual([0, 3, 0, 3]);
});

it("submit accepts a transaction after a nonce gap, and refuses its repeat with geth's message", async () => {
  await using chain = await folder.start();
  await sendCall(chain, { nonce: 1, data: "0x" });
  await expect(sendCall(chain, { nonce: 1, data: "0x" })).rejects.toMatchObject({
    code: -32_000,
    message: "already known",
  });
  await expect(chain.submit(Uint8Array.of(5))).rejects.toBeInstanceOf(ProviderRpcError);
});

it("the chain keeps the write-ahead log below twice its limit while blocks change many slots", async () => {
  await using chain = await folder.start();
  const blocks: CommittedBlock[] = [];
  chain.follow((block) => blocks.push(block));
  await sendCall(chain, { nonce: 0, data: SLOT_WRITER });
  const to = getContractAddress({ from: SIGNER.address, nonce: 0n });
  let logBytes = 0;
  for (let nonce = 1; nonce <= 40; nonce += 1) {
    const range = [nonce * 400, (nonce + 1) * 400].map((slot) => slot.toString(16).padStart(64, "0"));
    await sendCall(chain, { nonce, to, data: `0x${range.join("")}` });
    await untilSealed(blocks, nonce + 1);
    logBytes = Math.max(logBytes, statSync(`${folder.file}-wal`).size);
  }
  expect(logBytes).toBeLessThan(2 * LOG_BYTES_MAX);
});

it("readBlocks returns the blocks that follow passed on, and names a block that is damaged in the file", async () => {
  const blocks: CommittedBlock[] = [];
  {
    await using chain = await folder.start();
    chain.follow((block) => blocks.push(block));
    for (let nonce = 0; nonce < 4; nonce += 1) {
      await sendCall(chain, { nonce, data: yardstickBytecode });
      await untilSealed(blocks, nonce + 1);
    }
    expect((await chain.readBlocks({ from: 1, to: 99 })).map(plain)).toEqual(blocks.map(plain));
    expect(await chain.readBlocks({ from: 3, to: 3 })).toHaveLength(1);
  }
  const sqlite = new DatabaseSync(folder.file);
  const flipped = sqlite.prepare(
    "UPDATE transactions SET raw = CAST(replace(raw, x'60', x'61') AS BLOB) WHERE place = 2 << 20",
  );
  expect(flipped.run().changes).toBe(1);
  sqlite.close();
  await using chain = await folder.start();
  const reported: Error[] = [];
  chain.on("damage", (error) => reported.push(error));
  expect(await chain.readBlocks({ from: 1, to: 1 })).toHaveLength(1);
  await expect(chain.readBlocks({ from: 1, to: 4 })).rejects.toThrow(/^Block 2 of the chain is damaged/);
  expect(reported).toHaveLength(1);
});

/** The parts of a block to compare, as hex: its bytes are views of other memory. */
function plain({ hash, transactions }: CommittedBlock): unknown {
  return {
    hash: toHex(hash),
    transactions: transactions.map((one) => ({ hash: toHex(one.hash), logs: one.logs.length })),
  };
}
