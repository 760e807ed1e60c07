import { expect, test } from "vitest";
import { SenderWorld } from "../testing/sender-world.ts";
import { TestJournal } from "../testing/writer-world.ts";

/** A sender whose journal has a transaction of block 1. The chain node knows the transaction, but has deleted its receipt and the old states. */
async function restartLate(journal: TestJournal): Promise<SenderWorld> {
  const earlier = new SenderWorld({ journal });
  await earlier.send(1);
  await earlier.sender.stop(AbortSignal.abort());
  const world = new SenderWorld({ journal });
  world.node.request = async ({ method, params = [] }) => {
    if (method === "eth_getTransactionReceipt") return null;
    if (method === "eth_getTransactionByHash") return { blockNumber: "0x1", blockHash: `0x${"11".repeat(32)}` };
    if (method === "eth_sendRawTransaction") throw refused("nonce too low");
    if (method === "eth_getTransactionCount" && Number(params[1]) < world.readUpTo) throw refused("missing trie node");
    return "0x1";
  };
  return world;
}

function refused(message: string): Error {
  return Object.assign(new Error(message), { code: -32_000 });
}

test("forgets a transaction of an earlier run once it is 64 blocks deep, even if its receipt is gone", async () => {
  const journal = new TestJournal();
  const world = await restartLate(journal);
  const { clock, sender, signer } = world;
  world.readUpTo = 64;
  await sender.start();
  await clock.advance(60_000);
  expect(sender.unfinished).toBe(1);
  world.readUpTo = 65;
  await clock.advance(60_000);
  expect(sender.unfinished).toBe(0);
  expect(sender.trouble.find()).toBeUndefined();
  expect(await journal.listTransactions("", signer.address)).toEqual([]);
});
