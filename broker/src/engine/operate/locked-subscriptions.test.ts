import { afterEach, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { testCaller } from "../testing/as-caller.ts";
import { secretNamed } from "../testing/secret-named.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { withCalls } from "../../lib/with-calls.ts";
import type { SubscriptionOrder } from "./calls.ts";

const url = "http://receiver/";
let engine: TestEngine;
let isLost: boolean;
/** Starts a broker whose store returns locked subscriptions while `isLost`. */
async function start(): Promise<string> {
  const memory = createMemoryStore();
  isLost = false;
  const findSubscription = async (id: string) => {
    const row = await memory.findSubscription(id as Subscription["id"]);
    return isLost && row !== undefined ? lockedOf(row) : row;
  };
  engine = await TestEngine.start({ store: withCalls(memory, { findSubscription }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  return engine.subscribe("a", { url, secret: secretNamed("a") });
}
afterEach(() => engine.stop());

function lockedOf(row: Subscription): Subscription {
  const { state } = row;
  return { ...row, state: "locked", ...((state === "paused" || state === "suspended") && { heldState: state }) };
}

const stateOf = async (id: string) => (await engine.broker.operator.getSubscription(testCaller, id)).subscription.state;
const order = (id: string, one: SubscriptionOrder) =>
  settle(engine.broker.operator.orderSubscription(testCaller, id, { order: one, isDryRun: false }));
const change = (id: string) => order(id, { kind: "change", change: { secret: secretNamed("a") } });

/** Lets the work end: an order stops the worker, whose attempt in progress may take a second of virtual time. */
async function settle<Result>(work: Promise<Result>): Promise<Result> {
  work.catch(() => undefined);
  await engine.clock.settle();
  await engine.clock.advance(1_000);
  return work;
}

it.each<[string, (id: string) => Promise<unknown>]>([
  ["its owner", (id) => settle(engine.subscribe("a", { url, subscriptionId: id, secret: secretNamed("a") }))],
  ["an operator", change],
])("a paused subscription whose secret was lost stays paused when %s gives the secret again", async (_, give) => {
  const id = await start();
  await order(id, { kind: "pause" });
  isLost = true;
  expect(await stateOf(id)).toBe("locked");
  await give(id);
  isLost = false;
  expect(await stateOf(id)).toBe("paused");
});

it("a suspended subscription whose secret was lost stays suspended when an operator gives the secret again", async () => {
  const id = await start();
  engine.sink.receive(url, () => ({ status: "gone", reason: "410" }));
  await engine.publishMany("a", 1);
  await engine.clock.settle();
  expect(await stateOf(id)).toBe("suspended");
  isLost = true;
  await change(id);
  isLost = false;
  await engine.clock.settle();
  expect([await stateOf(id), engine.sink.sequencesOf(id)]).toEqual(["suspended", [1]]);
});

it("an active subscription whose secret was lost is delivered again when an operator gives the secret again", async () => {
  const id = await start();
  isLost = true;
  await change(id);
  isLost = false;
  await engine.publishMany("a", 1);
  await engine.clock.settle();
  expect([await stateOf(id), engine.sink.sequencesOf(id)]).toEqual(["active", [1]]);
});

it("health says how many subscriptions are locked and what to do", async () => {
  const held = [{ groupId: defaultGroupId, state: "locked", count: 2 }] as const;
  const store = withCalls(createMemoryStore(), { countHeld: async () => held });
  engine = await TestEngine.start({ store, readMemory: () => 0 }); // Without `readMemory`, the engine counts nothing.
  await engine.clock.settle();
  const [health] = engine.running.groupHealth();
  expect(health).toMatchObject({ held: { suspended: 0, paused: 0, locked: 2 } });
  expect(health?.warning).toMatch(/^2 subscriptions are locked, .* restore the key file .*state=locked lists them$/);
});
