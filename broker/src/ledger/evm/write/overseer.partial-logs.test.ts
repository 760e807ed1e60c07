import { expect, test } from "vitest";
import { SenderWorld } from "../testing/sender-world.ts";
import { hashOf } from "../testing/writer-world.ts";

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
