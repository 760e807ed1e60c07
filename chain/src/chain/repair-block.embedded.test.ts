import { DatabaseSync } from "@photostructure/sqlite";
import { bytesToHex, concatBytes, getContractAddress, type Hex, hexToBytes, keccak256 } from "viem";
import { describe, expect, it } from "vitest";
import type { KnownTransaction } from "../messages.ts";
import { useChainFolder } from "../testing/chain-folder.ts";
import { CHAIN_ID, FEES, SIGNER } from "../testing/client.ts";

/** Creation code of a contract that logs its input under topic 1, as the registry logs the events of its input. */
const ECHO: Hex = "0x600a600a5f39600a5ff3365f5f376001365fa100";
const echo = getContractAddress({ from: SIGNER.address, nonce: 0n });
/** The place of the second block's transaction. */
const PLACE = 2 * 2 ** 20;
/** A part of the logged bytes: mostly zeros, like the topic's word in a receipt. */
const part = Uint8Array.of(0xcb, 0xca, 0x88, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0xc0);
/** Data so long that the stored receipt refers to the transaction instead of containing the data. */
const longData = concatBytes([new Uint8Array(150).fill(0x5a), part, new Uint8Array(150).fill(0x5a)]);

const folder = useChainFolder();

/** Makes the two blocks and returns what the owner knows of the second block's transaction. */
async function makeBlocks(data: Uint8Array): Promise<KnownTransaction> {
  await using chain = await folder.start();
  const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 100_000_000n } as const;
  const sealed = new Promise<void>((resolve) => chain.follow(({ header }) => header.number === 2n && resolve()));
  const creation = await SIGNER.signTransaction({ ...fields, nonce: 0, data: ECHO });
  await chain.submit(hexToBytes(creation));
  const raw = await SIGNER.signTransaction({ ...fields, nonce: 1, to: echo, data: bytesToHex(data) });
  await chain.submit(hexToBytes(raw));
  await sealed;
  return { hash: hexToBytes(keccak256(raw)), data, logged: [part] };
}

/** Flips bits at the first place of `part` in a column of the transaction. */
function damage(column: "raw" | "receipt"): void {
  const sqlite = new DatabaseSync(folder.file);
  const row = sqlite.prepare(`SELECT ${column} AS bytes FROM transactions WHERE place = ?`).get(PLACE);
  const bytes = Buffer.from((row as { bytes: Uint8Array }).bytes); // The statement's column.
  const at = bytes.indexOf(part);
  expect(at).toBeGreaterThan(0);
  bytes[at] = (bytes[at] ?? 0) ^ 0x55;
  sqlite.prepare(`UPDATE transactions SET ${column} = ? WHERE place = ?`).run(bytes, PLACE);
  sqlite.close();
}

describe("repairBlock", () => {
  it.each([
    [
      "a transaction if its intact receipt has, by chance, the same bytes as a part of the transaction",
      "raw",
      longData,
    ],
    ["a receipt that contains a part literally", "receipt", part],
  ] as const)("repairBlock repairs %s", async (_what, column, data) => {
    const known = await makeBlocks(data);
    damage(column);
    await using chain = await folder.start();
    expect(await chain.checkBlocks({ from: 2, to: 2 })).toMatchObject({ damaged: [{ number: 2 }] });
    expect(await chain.repairBlock(2, [known])).toBe(true);
    expect(await chain.checkBlocks({ from: 2, to: 2 })).toMatchObject({ damaged: [] });
  });

  it("repairBlock soon gives up on a large transaction, because new blocks wait", async () => {
    const known = await makeBlocks(concatBytes([new Uint8Array(1_000_000).fill(0x61), part]));
    damage("raw");
    await using chain = await folder.start();
    const checkMs = await timeOf(() => chain.checkBlocks({ from: 2, to: 2 }));
    const repairMs = await timeOf(() => chain.repairBlock(2, [{ ...known, hash: new Uint8Array(32) }]));
    expect(repairMs / checkMs).toBeLessThan(20);
  });
});

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
