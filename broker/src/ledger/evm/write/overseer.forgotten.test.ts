import { expect, test } from "vitest";
import { SenderWorld } from "../testing/sender-world.ts";
import { hashOf, TestJournal } from "../testing/writer-world.ts";

/** Longer than the longest time between two checks of a waiting transaction. */
const longMs = 30_000;
/** Longest time between two checks of a waiting transaction. */
const lookMsMax = 8000;

/** Sends `seen` transactions, which get into a block that is not final, then `count` others, which stay in the pool. Returns after `longMs`. */
async function startWithWaiting(count: number, { seen = 0, isForgiving = false } = {}): Promise<SenderWorld> {
  const world = new SenderWorld();
  world.node.includeMax = seen;
  world.node.isForgiving = isForgiving;
  for (let sent = 0; sent < seen + count; sent += 100) {
    await world.send(Math.min(100, seen + count - sent));
    await world.clock.advance(1500);
  }
  await world.clock.advance(longMs);
  expect(world.node.pool.size).toBe(count);
  return world;
}

test.each([
  { forgotten: 20, seen: 0, backMsMax: 1500 },
  { forgotten: 256, seen: 0, backMsMax: 3000 },
  { forgotten: 100, seen: 400, backMsMax: 5000 },
  { forgotten: 256, seen: 600, backMsMax: lookMsMax },
])(
  "within $backMsMax ms, resends $forgotten transactions that the chain node lost, while $seen others are in a block",
  async (given) => {
    const world = await startWithWaiting(given.forgotten, given);
    const { node } = world;
    node.pool.clear();
    expect(await world.timeUntil(() => node.pool.size === given.forgotten)).toBeLessThanOrEqual(given.backMsMax);
  },
);

test.each([1, 20])(
  "resends %i transactions, which the chain node lost during an outage, within 2 s of the end of the outage",
  async (count) => {
    const world = await startWithWaiting(count);
    const { node, clock } = world;
    node.isAway = true;
    node.pool.clear();
    await clock.advance(longMs);
    node.isAway = false;
    expect(await world.timeUntil(() => node.pool.size === count)).toBeLessThanOrEqual(2000);
  },
);

test.each([0, 1, 2, 3, 4, 5, 6, 7])(
  "within 2 s after each of two outages of 30 + %i s, resends the lost transactions, but not one that is in a block",
  async (seconds) => {
    const world = await startWithWaiting(21);
    const { node, clock } = world;
    const [first] = node.pool;
    if (first === undefined) throw new Error("nothing was sent");
    node.isAway = true;
    node.pool.clear();
    node.included.add(hashOf(first));
    await clock.advance(longMs + seconds * 1000);
    node.isAway = false;
    expect(await world.timeUntil(() => node.pool.size === 20)).toBeLessThanOrEqual(2000);
    node.isAway = true;
    node.pool.clear();
    await clock.advance(longMs + seconds * 1000);
    node.isAway = false;
    expect(await world.timeUntil(() => node.pool.size === 20)).toBeLessThanOrEqual(2000);
  },
);

test.each([0, 2, 4, 6])(
  "resends all unanswered transactions within 2 s after an outage of 30 + %i s",
  async (seconds) => {
    const world = new SenderWorld();
    const { node, clock } = world;
    node.includeMax = 1;
    world.readUpTo = 1;
    await world.send(1);
    await clock.advance(1500);
    node.isAway = true;
    // All at once: after a send without an answer, the sender signs no other transaction until it has read the next nonce.
    await Promise.all(Array.from({ length: 20 }, () => world.send(1)));
    await clock.advance(longMs + seconds * 1000);
    node.isAway = false;
    expect(await world.timeUntil(() => node.pool.size === 20)).toBeLessThanOrEqual(2000);
  },
);

test.each([16, 256])(
  "resends %i transactions one to four times on average in 16 s if the chain node accepts known ones as new",
  async (count) => {
    const { node, clock } = await startWithWaiting(count, { isForgiving: true });
    node.sends = 0;
    await clock.advance(2 * lookMsMax);
    expect(node.sends).toBeGreaterThanOrEqual(count);
    expect(node.sends).toBeLessThanOrEqual(4 * count);
  },
);

test("resends transactions refused for a nonce gap as soon as the gap is filled", async () => {
  const world = new SenderWorld();
  const { node, clock } = world;
  node.isStrict = true;
  node.isAway = true;
  await world.send(1);
  await clock.advance(700);
  node.isAway = false;
  node.refusal = new Error("busy");
  await world.send(30);
  node.refusal = undefined;
  const since = clock.now();
  await world.timeUntil(() => node.pool.size > 0);
  expect(await world.timeUntil(() => node.pool.size === 31)).toBe(0);
  expect(clock.now() - since).toBeLessThanOrEqual(lookMsMax);
});

test("within 8 s, resends a transaction that a reorg removed, even if 200 later ones wait", async () => {
  const world = new SenderWorld({ journal: new TestJournal() });
  const { node, clock, sender } = world;
  node.isForgiving = true;
  await world.send(1);
  const [raw] = node.pool;
  if (raw === undefined) throw new Error("nothing was sent");
  node.pool.clear();
  node.included.add(hashOf(raw));
  world.readUpTo = 1;
  await clock.advance(2000);
  await world.send(200);
  await clock.advance(longMs);
  node.included.clear();
  world.readUpTo = 0;
  sender.onReorganised(0);
  expect(await world.timeUntil(() => node.pool.has(raw))).toBeLessThanOrEqual(lookMsMax);
});
