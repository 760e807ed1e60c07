import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { SenderWorld } from "../testing/sender-world.ts";

const feeBumpAfterMs = 5000;

/** Nonces of the versions in the node's pool. */
const noncesOf = ({ node }: SenderWorld) => [...node.pool].map((raw) => parseTransaction(raw).nonce ?? 0);

/** Sends `seen` transactions, which get into a block that is not final, and two others, which wait in the pool while the chain makes blocks. */
async function startStuck(seen: number): Promise<SenderWorld> {
  const world = new SenderWorld({ fees: "legacy", feeBumpAfterMs });
  await world.fees.refresh();
  world.node.includeMax = seen;
  await world.send(seen + 2);
  await world.clock.advance(1500);
  world.head += 1;
  return world;
}

test.each([0, 1, 3])("raises the fee of the next stuck transaction though %i before it are not final", async (seen) => {
  const world = await startStuck(seen);
  expect(noncesOf(world)).toEqual([seen, seen + 1]);
  await world.clock.advance(3 * feeBumpAfterMs);
  expect(noncesOf(world).filter((nonce) => nonce === seen).length).toBeGreaterThan(1);
  expect(noncesOf(world).filter((nonce) => nonce === seen + 1)).toHaveLength(1);
});
