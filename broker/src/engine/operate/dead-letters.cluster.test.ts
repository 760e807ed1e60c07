import { errorCatalogue } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import { type DeadLetter, reserveLetter } from "../../domain/dead-letter.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import type { DeadLetters } from "../../ports/dead-letters.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestCluster, type TestClusterOptions } from "../testing/test-cluster.ts";
import type { DeadLetterOrder, OrderResult } from "./calls.ts";

let cluster: TestCluster;
afterEach(() => cluster.stopAll());

const page = { after: undefined, limit: 50 };
const all = [1, 2, 3, 4, 5, 6];
const redeliver = { kind: "redeliver", eventId: undefined } as const;
const discard = { kind: "discard", eventId: undefined } as const;
const held = expect.objectContaining({ code: errorCatalogue.subscriptionHeld.code });
/** How long the receiver takes to accept an event, in milliseconds. */
const takesMs = 200;

/** Starts two nodes and a subscription with six dead letters. After that its receiver accepts every event. */
async function startWithLetters(options: TestClusterOptions = {}): Promise<string> {
  cluster = await TestCluster.start(2, options);
  let outcome: AttemptOutcome = { status: "failed", reason: "answered 500" };
  cluster.sink.receive("http://receiver/", async () => {
    if (outcome.status === "accepted") await new Promise<void>((resolve) => void cluster.clock.after(takesMs, resolve));
    return outcome;
  });
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  const id = await cluster.run(cluster.subscribe(0, "a", { options: { onFailure: "skip", attemptsMax: 1 } }));
  for (const sequence of all) await cluster.run(cluster.publish(0, "a", String(sequence)));
  await cluster.clock.advance(5_000);
  outcome = { status: "accepted" };
  cluster.sink.attempts.length = 0;
  return id;
}

function order(index: number, id: string, one: DeadLetterOrder): Promise<OrderResult> {
  const work = cluster.node(index).broker.operator.orderSubscription(testCaller, id, { order: one, isDryRun: false });
  work.catch(() => undefined);
  return work;
}

const lettersOf = async (index: number, id: string) =>
  (await cluster.run(cluster.node(index).broker.operator.listDeadLetters(testCaller, id, page))).items;

/** Delays of 0 to `mostMs` milliseconds for messages to the store: pseudo-random, the same in every run. */
function uneven(mostMs: number): () => number {
  let state = 7;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state % (mostMs + 1);
  };
}

describe("two nodes that redeliver at once", () => {
  it.each([0, 1, 50, 150, 199, 200, 201, 250, 390, 410, 1_150, 1_250])(
    "deliver each event once and in order when the second begins after %i ms",
    async (afterMs) => {
      const id = await startWithLetters({ delayMs: uneven(20) });
      const first = order(0, id, redeliver);
      await cluster.clock.advance(afterMs);
      const second = order(1, id, redeliver);
      const results = await cluster.run(Promise.allSettled([first, second]));
      await cluster.clock.advance(5_000);
      expect(cluster.sink.sequencesOf(id)).toEqual(all);
      const counts = results.map((one) => (one.status === "fulfilled" ? one.value.events : 0));
      expect(counts.reduce((sum, count) => sum + count)).toBe(all.length);
      for (const one of results) if (one.status === "rejected") expect(one.reason).toEqual(held);
      expect(await lettersOf(1, id)).toEqual([]);
    },
  );

  it("deliver different events at once", async () => {
    const id = await startWithLetters();
    const [one, two] = await lettersOf(0, id);
    const first = order(0, id, { kind: "redeliver", eventId: one?.eventId });
    const second = order(1, id, { kind: "redeliver", eventId: two?.eventId });
    const results = await cluster.run(Promise.all([first, second]));
    expect(results).toMatchObject([{ events: 1 }, { events: 1 }]);
    expect(new Set(cluster.sink.sequencesOf(id))).toEqual(new Set([1, 2]));
  });
});

it.each<[string, number, (store: DeadLetters, first: DeadLetter) => Promise<unknown>]>([
  ["goes", all.length - 1, (store, first) => store.remove([first])],
  ["fails again at another node", all.length, (store, first) => store.replace(first, { ...first, attempts: 2 })],
])(
  "a redelivery whose first dead letter %s right after it was listed ends, and is not refused",
  async (_, left, meanwhile) => {
    const id = await startWithLetters();
    const { deadLetters } = cluster.shared.store;
    const list = deadLetters.list.bind(deadLetters);
    deadLetters.list = async (...call) => {
      const due = await list(...call);
      for (const first of due.slice(0, 1)) await meanwhile(deadLetters, first);
      return due;
    };
    expect(await cluster.run(order(0, id, redeliver))).toEqual({ id, events: 0, deadLetters: { left } });
  },
);

it("a redelivery ends if its first dead letter is removed and another node has reserved a later one with the same eventId", async () => {
  cluster = await TestCluster.start(2);
  cluster.sink.receive("http://receiver/", () => ({ status: "failed", reason: "answered 500" }));
  const topics = ["topic/50622", "topic/83634"]; // Their eventIds begin with the same digits.
  for (const topic of topics) await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
  const id = await cluster.run(cluster.subscribe(0, "topic/+", { options: { onFailure: "skip", attemptsMax: 1 } }));
  await cluster.run(Promise.all(topics.map((topic) => cluster.publish(0, topic, topic))));
  await cluster.clock.advance(5_000);
  const { deadLetters } = cluster.shared.store;
  const list = deadLetters.list.bind(deadLetters);
  const [nodeId] = cluster.node(1).ids;
  deadLetters.list = async (...call) => {
    const due = await list(...call);
    const [one, two] = due;
    if (one === undefined || two?.eventId !== one.eventId || nodeId === undefined)
      throw new Error("two dead letters with one eventId or a node missing");
    await deadLetters.remove([one]);
    await deadLetters.replace(two, reserveLetter(two, { nodeId, now: cluster.clock.now() }));
    return due;
  };
  expect(await cluster.run(order(0, id, redeliver))).toEqual({ id, events: 0, deadLetters: { left: 1 } });
});

it("while a node redelivers dead letters, another node refuses to discard them", async () => {
  const id = await startWithLetters();
  const first = order(0, id, redeliver);
  await cluster.clock.advance(takesMs / 2);
  await expect(cluster.run(order(1, id, discard))).rejects.toEqual(held);
  expect(await cluster.run(first)).toMatchObject({ events: all.length });
});

it("a redelivery that fails counts as one more attempt, whichever node made it", async () => {
  const id = await startWithLetters();
  cluster.sink.receive("http://receiver/", () => ({ status: "failed", reason: "answered 503" }));
  await cluster.run(order(1, id, redeliver));
  await cluster.run(order(0, id, redeliver));
  expect(await lettersOf(0, id)).toMatchObject(all.map(() => ({ attempts: 3, reason: "answered 503" })));
});

it("if a node stops during a redelivery, the dead letters stay as they were, and another node can redeliver them at once", async () => {
  const id = await startWithLetters();
  cluster.sink.receive("http://receiver/", () => new Promise(() => {}));
  const first = order(0, id, redeliver);
  await cluster.clock.advance(100);
  const listed = await lettersOf(1, id);
  expect(listed[0]).toMatchObject({ attempts: 2, reason: expect.stringContaining("delivered again by the node") });
  await cluster.stop(0);
  expect(await first).toMatchObject({ events: 0, deadLetters: { left: all.length } });
  cluster.sink.receive("http://receiver/", () => ({ status: "accepted" }));
  expect(await cluster.run(order(1, id, redeliver))).toMatchObject({ events: all.length, deadLetters: { left: 0 } });
});

it("a dead letter that a killed node has reserved is refused to others until the node's membership ends", async () => {
  const id = await startWithLetters();
  void order(0, id, redeliver);
  await cluster.clock.advance(takesMs + takesMs / 2);
  cluster.kill(0);
  await expect(cluster.run(order(1, id, redeliver))).rejects.toEqual(held);
  await cluster.clock.advance(20_000);
  expect(await cluster.run(order(1, id, redeliver))).toMatchObject({ events: 5, deadLetters: { left: 0 } });
  expect(cluster.sink.sequencesOf(id)).toEqual([1, 2, 2, 3, 4, 5, 6]);
});

it("if a node left a dead letter reserved, that node can redeliver it at once, and other nodes can after a minute", async () => {
  const id = await startWithLetters();
  const { deadLetters } = cluster.shared.store;
  const [one, two] = await deadLetters.list(parseSubscriptionId(id), page);
  const [nodeId] = cluster.node(0).ids;
  if (one === undefined || two === undefined || nodeId === undefined)
    throw new Error("two dead letters or a node missing");
  const reservation = { nodeId, now: cluster.clock.now() };
  for (const letter of [one, two]) await deadLetters.replace(letter, reserveLetter(letter, reservation));
  expect(await cluster.run(order(0, id, { kind: "redeliver", eventId: one.eventId }))).toMatchObject({ events: 1 });
  const other = { kind: "redeliver", eventId: two.eventId } as const;
  await expect(cluster.run(order(1, id, other))).rejects.toEqual(held);
  await cluster.clock.advance(60_000);
  expect(await cluster.run(order(1, id, other))).toMatchObject({ events: 1 });
});
