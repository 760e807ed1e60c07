import { setImmediate as nextTurn } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { Signer, signTransaction } from "@stele/eth/node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Chain } from "../chain/chain.ts";
import { Simulator } from "../execution/simulator.ts";
import { BLOCK_GAS_LIMIT_DEFAULT, CHECKED_BYTES_MAX, UNSAVED_BYTES_MAX_DEFAULT } from "../limits.ts";
import { ChainDatabase } from "../storage/chain-database.ts";
import { SCHEMA } from "../storage/schema.ts";
import { CHAIN_ID, FEES } from "../testing/client.ts";
import type { ReadContext } from "./context.ts";
import { dispatchRead } from "./dispatch.ts";

const signer = new Signer(new Uint8Array(32).fill(9));
/** Transactions of block 1 and of block 2. */
const [manyTotal, longTotal] = [200, 4];

let chain: Chain;
let context: ReadContext;
beforeAll(async () => {
  const database = new DatabaseSync(":memory:");
  database.exec(SCHEMA);
  const options = {
    chainId: CHAIN_ID,
    genesisAccounts: [signer.address],
    blockGasLimit: BLOCK_GAS_LIMIT_DEFAULT,
    callGasMax: 0n,
    transactionBytesMax: 2 * CHECKED_BYTES_MAX,
    callTimeMsMax: 0,
    checkInterval: 1,
    registryCode: undefined,
    unsavedBytesMax: UNSAVED_BYTES_MAX_DEFAULT,
  };
  chain = await Chain.open(new ChainDatabase(database), options, {
    blockSealed: () => {},
    sealingEnded: () => {},
    transactionPooled: () => {},
    faultChanged: () => {},
    mismatchFound: () => {},
    damageFound: () => {},
  });
  const fees = { kind: "eip1559", ...FEES } as const;
  const fields = { chainId: CHAIN_ID, fees, to: signer.address };
  const [many, long] = [
    { gas: 21_000, data: new Uint8Array(0) },
    { gas: 5_000_000, data: new Uint8Array(CHECKED_BYTES_MAX) },
  ];
  for (let nonce = 0; nonce < manyTotal; nonce += 1)
    chain.submit(signTransaction({ ...fields, ...many, nonce }, signer).raw);
  while (chain.head.header.number === 0n) await nextTurn();
  for (let nonce = manyTotal; nonce < manyTotal + longTotal; nonce += 1)
    chain.submit(signTransaction({ ...fields, ...long, nonce }, signer).raw);
  while (chain.head.header.number === 1n) await nextTurn();
  const simulator = await Simulator.create({
    chainId: CHAIN_ID,
    view: chain.nodes.head(),
    readBlockHash: () => new Uint8Array(32),
    timeMsMax: 0,
  });
  context = { chain, simulator };
});
afterAll(() => chain.stop());

it.each([
  ["the receipts of many transactions", { method: "eth_getBlockReceipts", params: ["0x1"] }, manyTotal],
  ["a block with many transactions", { method: "eth_getBlockByNumber", params: ["0x1", true] }, manyTotal],
  ["the receipts of long transactions", { method: "eth_getBlockReceipts", params: ["0x2"] }, longTotal],
  ["a block with long transactions", { method: "eth_getBlockByNumber", params: ["0x2", true] }, longTotal],
] as const)("other work runs while the chain makes the answer with %s", async (_, request, total) => {
  const answering = dispatchRead(context, request);
  expect(await Promise.race([answering, nextTurn("others")])).toBe("others");
  const answer = await answering;
  const each = Array.isArray(answer) ? answer : (answer as { transactions: unknown[] }).transactions; // As the methods say.
  expect(each).toHaveLength(total);
  const transactionIndex = `0x${(total - 1).toString(16)}`;
  expect(each[total - 1]).toMatchObject({ from: signer.address.toLowerCase(), transactionIndex });
});
