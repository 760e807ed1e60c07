import { expect, test } from "vitest";
import { SenderWorld } from "../testing/sender-world.ts";
import { hashOf } from "../testing/writer-world.ts";
import { noOp } from "./transaction-state.ts";

test("asks for the receipt at once if a round has only a part of a transaction's logs", async () => {
  const world = new SenderWorld();
  const { node, sender, signer } = world;
  await world.send(1, { logsExpected: 2 });
  const [raw] = node.pool;
  if (raw === undefined) throw new Error("nothing was sent");
  const asked: string[] = [];
  node.before = async (method) => void asked.push(method);
  const blockHash = `0x${"11".repeat(32)}` as const;
  const place = { blockNumber: 1, blockHash, transactionHash: hashOf(raw), logIndex: 0, address: signer.address };
  sender.onRound({ logs: [{ ...place, kind: "topic-closed" }] });
  expect(asked).toEqual(["eth_getTransactionReceipt"]);
});

test("accepts the receipt of a no-op, which has no logs, even if the chain node returns it with the bloom of the whole block", async () => {
  const world = new SenderWorld();
  const { node, clock, sender, signer } = world;
  const request = node.request.bind(node);
  node.request = async (call) => {
    const answer = await request(call);
    const hasBloom = call.method === "eth_getTransactionReceipt" && answer !== null;
    return hasBloom ? { ...(answer as object), logsBloom: "0x01" } : answer; // A receipt.
  };
  node.includeMax = 2;
  world.readUpTo = 1;
  void sender.send(noOp(signer.address), new AbortController().signal);
  await world.send(1, { mayLackLogs: false }); // A publish, which waits for its logs.
  await clock.advance(10_000);
  expect(sender.unfinished).toBe(1);
});
