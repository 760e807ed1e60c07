import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import { SenderWorld } from "../testing/sender-world.ts";
import { hashOf } from "../testing/writer-world.ts";

const feeBumpAfterMs = 5000;

/** Nonces of the versions in the chain node's pool. */
const noncesOf = ({ node }: SenderWorld) => [...node.pool].map((raw) => parseTransaction(raw).nonce ?? 0);

/** Sends `seen` transactions, which get into a block that is not final, and two more. These wait in the pool while the chain makes blocks. */
async function startStuck(seen: number): Promise<SenderWorld> {
  const world = new SenderWorld({ fees: "legacy", feeBumpAfterMs });
  await world.fees.refresh();
  world.node.includeMax = seen;
  await world.send(seen + 2);
  await world.clock.advance(1500);
  world.head += 1;
  return world;
}

test.each([0, 1, 3])("raises the fee of the next stuck transaction while %i before it are not final", async (seen) => {
  const world = await startStuck(seen);
  expect(noncesOf(world)).toEqual([seen, seen + 1]);
  await world.clock.advance(3 * feeBumpAfterMs);
  expect(noncesOf(world).filter((nonce) => nonce === seen).length).toBeGreaterThan(1);
  expect(noncesOf(world).filter((nonce) => nonce === seen + 1)).toHaveLength(1);
});

test("raises the fee of a transaction that was signed while the endpoint named the newest block of another, higher chain", async () => {
  const world = new SenderWorld({ fees: "legacy", feeBumpAfterMs });
  await world.fees.refresh();
  world.head = 20_000_000;
  await world.send(1);
  world.head = 2;
  await world.clock.advance(3 * feeBumpAfterMs);
  expect(noncesOf(world).length).toBeGreaterThan(1);
});

test("recognises a version that was signed and included while the endpoint was slow, and sends no second transaction", async () => {
  const world = new SenderWorld({ fees: "legacy", feeBumpAfterMs });
  const { node, clock, sender, signer } = world;
  await world.fees.refresh();
  const count = createDeferred<void>();
  await world.send(1, { logsExpected: undefined });
  world.head += 1;
  await clock.advance(feeBumpAfterMs - 1000);
  let counts = 0;
  node.before = async (method) => {
    if (method === "eth_getTransactionCount" && counts++ === 0) await count.promise;
  };
  sender.onRound({ logs: [] }); // This begins a check whose answer comes late.
  await world.timeUntil(() => node.pool.size === 2);
  const [, raised] = [...node.pool];
  if (raised === undefined) throw new Error("the fee was not raised");
  node.pool.clear();
  node.included.add(hashOf(raised));
  node.foreign = { hash: hashOf(raised), from: signer.address, nonce: "0x0" };
  world.readUpTo = 1;
  count.resolve();
  await clock.advance(20_000);
  expect(noncesOf(world)).toEqual([]);
  expect(sender.unfinished).toBe(0);
});

test.each([
  "insufficient funds for gas * price + value",
  "tx fee (1.25 ether) exceeds the configured cap (1.00 ether)",
])(
  "resends the older version if the chain node loses it and refuses the version with the raised fee: %s",
  async (message) => {
    const world = new SenderWorld({ fees: "legacy", feeBumpAfterMs });
    const { node, clock } = world;
    await world.fees.refresh();
    await world.send(1);
    const [older] = node.pool;
    const price = world.fees.current();
    node.onSend = (raw) => {
      if (price.kind === "legacy" && (parseTransaction(raw).gasPrice ?? 0n) > price.gasPrice)
        throw Object.assign(new Error(message), { code: -32_000 });
    };
    world.head += 1;
    await clock.advance(20 * feeBumpAfterMs);
    node.pool.clear();
    await clock.advance(20_000);
    expect([...node.pool]).toEqual([older]);
  },
);

test.each(["oversized data", "intrinsic gas too low"])(
  "a no-op replaces a transaction that the chain node lost and now refuses, even with a raised fee: %s",
  async (message) => {
    const world = new SenderWorld({ fees: "legacy", feeBumpAfterMs, deadlineMs: 10_000 });
    const { node, clock } = world;
    await world.fees.refresh();
    await world.send(1, { data: new Uint8Array(100) });
    node.pool.clear();
    node.onSend = (raw) => {
      if (parseTransaction(raw).data !== undefined) throw Object.assign(new Error(message), { code: -32_000 });
    };
    for (let seconds = 0; seconds < 120; seconds += 1) {
      world.head += 1;
      await clock.advance(1000);
    }
    expect(new Set(noncesOf(world))).toEqual(new Set([0]));
  },
);

test("offers at most 16 times the endpoint's price to an endpoint that accepts no price", async () => {
  const world = new SenderWorld({ fees: "legacy", feeBumpAfterMs });
  await world.fees.refresh();
  const { node, clock } = world;
  const prices: bigint[] = [];
  node.onSend = (raw) => {
    prices.push(parseTransaction(raw).gasPrice ?? 0n);
    throw Object.assign(new Error("transaction underpriced"), { code: -32_000 });
  };
  await world.send(1);
  for (let seconds = 0; seconds < 300; seconds += 1) {
    world.head += 1;
    await clock.advance(1000);
  }
  const [first = 0n] = prices;
  const highest = prices.reduce((left, right) => (left > right ? left : right));
  expect(first).toBe(1_000_000_000n);
  expect(highest).toBeGreaterThan(10n * first);
  expect(highest).toBeLessThanOrEqual(16n * first);
});
