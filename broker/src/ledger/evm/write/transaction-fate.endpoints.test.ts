import { expect, test } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { EndpointSet } from "../endpoint/endpoint-set.ts";
import { Rpc } from "../endpoint/rpc.ts";
import { FakeNode } from "../endpoint/testing/fake-node.ts";
import { FastClock } from "../endpoint/testing/fast-clock.ts";
import { type Fate, findFate } from "./transaction-fate.ts";

const hash = `0x${"01".repeat(32)}` as const;
const methods = { receipt: "eth_getTransactionReceipt", transaction: "eth_getTransactionByHash" } as const;
const receipt = { blockNumber: "0x9", blockHash: hash, status: "0x1", gasUsed: "0x1", logs: [] };

/** Makes a chain node, which counts the nonce 7 as used, answer these methods with these results. It lacks a method whose result is undefined. */
function answer(node: FakeNode, results: Readonly<Record<string, unknown>>): void {
  node.answer = ({ id, method }) => {
    const block = { ...node.chain.block(), transactions: [] };
    const all: Readonly<Record<string, unknown>> = {
      eth_getTransactionCount: "0x8",
      eth_getBlockByNumber: block,
      ...results,
    };
    const result = method in all ? all[method] : node.chain.answer(method);
    return result === undefined ? { id, error: { code: -32_601, message: "no such method" } } : { id, result };
  };
}

/** The fate of a transaction with a used nonce. The first endpoint has nothing of the transaction; `found` says what the second one has. */
async function fateWith(found: Readonly<Record<string, unknown>>): Promise<Fate> {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  answer(first, { [methods.receipt]: null, [methods.transaction]: null });
  answer(second, found);
  const addresses = [first.url(), second.url()];
  const set = new EndpointSet({ addresses, clock: new FastClock(25), logger: silentLogger, timeoutMs: 20_000 });
  const fees = { kind: "legacy", gasPrice: 0n } as const;
  const variants = [{ raw: new Uint8Array(0), hash, fees, signedAt: 0, signedAtBlock: 0 }];
  const chain = { sender: `0x${"aa".repeat(20)}` as const, readUpTo: () => 100, isRead: async () => true };
  try {
    return await findFate({ nonce: 7, variants }, { rpc: new Rpc(set), ...chain });
  } finally {
    await set.close();
  }
}

test.each([
  ["the receipt", { [methods.receipt]: receipt }, { kind: "included" }],
  [
    "only the transaction",
    { [methods.receipt]: null, [methods.transaction]: receipt },
    { kind: "seen", blockNumber: 9 },
  ],
  [
    "neither, and no method for transactions",
    { [methods.receipt]: null, [methods.transaction]: undefined },
    { kind: "absent" },
  ],
])("finds a transaction by the second endpoint, which has %s", async (_, found, fate) => {
  expect(await fateWith(found)).toMatchObject(fate);
});
