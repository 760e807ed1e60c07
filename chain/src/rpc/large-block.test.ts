import { setImmediate as nextTurn } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { Signer, signTransaction } from "@stele/eth/node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Chain } from "../chain/chain.ts";
import { Simulator } from "../execution/simulator.ts";
import { BLOCK_GAS_LIMIT_DEFAULT, UNSAVED_BYTES_MAX_DEFAULT } from "../limits.ts";
import { ChainDatabase } from "../storage/chain-database.ts";
import { SCHEMA } from "../storage/schema.ts";
import { CHAIN_ID, FEES } from "../testing/client.ts";
import type { ReadContext } from "./context.ts";
import { dispatchRead } from "./dispatch.ts";

const signer = new Signer(new Uint8Array(32).fill(9));
const transactionsTotal = 200;

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
    transactionBytesMax: 10_000,
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
  const fields = { chainId: CHAIN_ID, fees, gas: 21_000, to: signer.address, data: new Uint8Array(0) };
  for (let nonce = 0; nonce < transactionsTotal; nonce += 1)
    chain.submit(signTransaction({ ...fields, nonce }, signer).raw);
  while (chain.head.header.number === 0n) await nextTurn();
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
  ["the receipts of a large block", "eth_getBlockReceipts", ["0x1"]],
  ["a large block with its transactions", "eth_getBlockByNumber", ["0x1", true]],
] as const)("others can do something while the senders of %s are recovered", async (_, method, params) => {
  const answering = dispatchRead(context, { method, params });
  expect(await Promise.race([answering, nextTurn("others")])).toBe("others");
  const answer = await answering;
  const each = Array.isArray(answer) ? answer : (answer as { transactions: unknown[] }).transactions; // As the methods say.
  expect(each).toHaveLength(transactionsTotal);
  expect(each[transactionsTotal - 1]).toMatchObject({ from: signer.address.toLowerCase(), transactionIndex: "0xc7" });
});
