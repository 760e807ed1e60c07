import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { SenderWorld } from "../testing/sender-world.ts";

test("sends a transaction at most six times a second, however long the chain node's pool is full", async () => {
  const world = new SenderWorld();
  const { node, clock } = world;
  let isFull = true;
  node.onSend = (raw) => {
    if (isFull && (parseTransaction(raw).nonce ?? 0) === 0)
      throw Object.assign(new Error("txpool is full"), { code: -32_000 });
  };
  await world.send(1);
  await world.send(1);
  await clock.advance(600_000);
  const before = node.sends;
  await clock.advance(10_000);
  expect(node.sends - before).toBeLessThanOrEqual(60);
  isFull = false;
  await clock.advance(10_000);
  expect(node.pool.size).toBe(2);
});
