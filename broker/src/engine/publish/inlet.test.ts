import { BrokerError } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import type { Topic } from "../../domain/topic.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { PublishCall, PublishOutcome } from "../broker.ts";
import { publish } from "../testing/publish.ts";
import { TestEngine } from "../testing/test-engine.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const topic = (name: string) => ({ topic: name, groupId: undefined });
const call = (name: string, text: string): PublishCall => ({
  ...topic(name),
  content: new TextEncoder().encode(text),
  extensions: [],
});

/** A store that counts reads of topics, can hold back its answers until the test releases them, and can return every topic as closed. */
function createCountedStore() {
  const store = createMemoryStore();
  const findTopic = store.findTopic.bind(store);
  const held: (() => void)[] = [];
  const state = { reads: 0, isHolding: false, held, closes: false };
  store.findTopic = async (groupId, name): Promise<Topic | undefined> => {
    state.reads += 1;
    const found = await findTopic(groupId, name);
    if (state.isHolding) await new Promise<void>((resolve) => void held.push(resolve));
    return found && { ...found, closed: found.closed || state.closes };
  };
  return { store, state };
}

it("settles every publish of a batch in the order of submission, in a later turn than the submission", async () => {
  engine = await TestEngine.start();
  await engine.broker.open(topic("a"));
  const outcomes: PublishOutcome[] = [];
  for (let index = 0; index < 100; index += 1) engine.broker.submit(call("a", `${index}`), (one) => outcomes.push(one));
  expect(outcomes).toEqual([]);
  await engine.clock.settle();
  const ids = outcomes.map((one) => (one.status === "SUCCESS" ? one.eventId : one.status));
  expect(ids.map((id) => id.split("-")[1])).toEqual(Array.from({ length: 100 }, (_, index) => `${index + 1}`));
  expect(new Set(ids.map((id) => id.split("-")[2])).size).toBe(1);
});

it("does not read a topic that is in memory from the index", async () => {
  const { store, state } = createCountedStore();
  engine = await TestEngine.start({ store });
  await engine.broker.open(topic("a"));
  await engine.publishMany("a", 3);
  const { reads } = state;
  await engine.publishMany("a", 50);
  expect(state.reads).toBe(reads);
});

it("keeps the order of publishes that arrive while their topic is being read", async () => {
  const { store, state } = createCountedStore();
  engine = await TestEngine.start({ store });
  await engine.broker.open(topic("a"));
  state.isHolding = true;
  const early = [1, 2].map((index) => publish(engine.broker, call("a", `early ${index}`)));
  await engine.clock.settle();
  state.held[0]?.();
  const late = publish(engine.broker, call("a", "late"));
  await engine.clock.settle();
  const sequences = (await Promise.all([...early, late])).map(({ eventId }) => eventId.split("-")[1]);
  expect(sequences).toEqual(["1", "2", "3"]);
});

it("reads a topic again for publishes that arrived during a read that found no topic", async () => {
  const { store, state } = createCountedStore();
  engine = await TestEngine.start({ store });
  state.isHolding = true;
  const before = publish(engine.broker, call("a", "too early")).catch((error: unknown) => error);
  await engine.clock.settle();
  state.isHolding = false;
  await engine.broker.open(topic("a"));
  const after = publish(engine.broker, call("a", "in time"));
  state.held[0]?.();
  await engine.clock.settle();
  expect(await before).toMatchObject({ code: 100101 });
  expect(await after).toMatchObject({ status: "SUCCESS" });
});

it("limits the publishes that wait for the index like those that wait for a transaction", async () => {
  const { store, state } = createCountedStore();
  engine = await TestEngine.start({ store, limits: { publishesWaitingMax: 2 } });
  await engine.broker.open(topic("a"));
  state.isHolding = true;
  const waiting = [1, 2].map((index) => publish(engine.broker, call("a", `${index}`)));
  await expect(publish(engine.broker, call("a", "3"))).rejects.toMatchObject({ code: 200300 });
  await engine.clock.settle();
  state.held[0]?.();
  await engine.clock.settle();
  expect(await Promise.all(waiting)).toMatchObject([{ status: "SUCCESS" }, { status: "SUCCESS" }]);
});

it("returns the chain's answer for a topic that another broker closed, and asks the index from then on", async () => {
  const { store, state } = createCountedStore();
  let isClosed = false;
  let transactions = 0;
  engine = await TestEngine.start({
    store,
    append: async (batches) => {
      transactions += 1;
      if (isClosed) return batches.map(() => ({ status: "rejected", reason: "closed-topic" }));
      throw new BrokerError("transactionFailed");
    },
  });
  await engine.broker.open(topic("a"));
  await expect(engine.publish("a", "1")).rejects.toMatchObject({ code: 200202 });
  isClosed = true;
  await expect(engine.publish("a", "2")).rejects.toMatchObject({ code: 100112 });
  expect(transactions).toBe(2);
  state.closes = true;
  await expect(engine.publish("a", "3")).rejects.toMatchObject({ code: 100112 });
  expect(transactions).toBe(2);
});

it("sends no transaction to a topic that the index says is closed, and publishes again once it is reopened", async () => {
  let transactions = 0;
  engine = await TestEngine.start();
  await engine.broker.open(topic("a"));
  await engine.publish("a", "1");
  const chainPublish = engine.chain.publish.bind(engine.chain);
  engine.chain.publish = (batches) => {
    transactions += 1;
    return chainPublish(batches);
  };
  await engine.broker.close(topic("a"));
  await expect(engine.publish("a", "2")).rejects.toMatchObject({ code: 100112 });
  expect(transactions).toBe(0);
  await engine.broker.open(topic("a"));
  expect(await engine.publish("a", "3")).toMatch(/-2-/);
});

describe("a caller whose callback throws", () => {
  const texts = ["throws", "stays", "stays too"];
  /** Publishes to each topic; the first callback throws. Returns the statuses that the other callbacks got. */
  async function submitAll(names: readonly string[]): Promise<readonly PublishOutcome["status"][]> {
    const outcomes: PublishOutcome["status"][] = [];
    for (const [index, name] of names.entries()) {
      engine.broker.submit(call(name, texts[index] ?? ""), ({ status }) => {
        if (index === 0) throw new Error("the caller's own fault");
        outcomes.push(status);
      });
    }
    await engine.clock.settle();
    return outcomes;
  }

  it.each([
    ["of its topic", ["a", "a", "a"]],
    ["of other topics", ["a", "b", "c"]],
  ])("does not keep callers %s from their answers", async (_, names) => {
    engine = await TestEngine.start();
    for (const name of new Set(names)) await engine.broker.open(topic(name));
    expect(await submitAll(names)).toEqual(["SUCCESS", "SUCCESS"]);
    for (const name of new Set(names)) await engine.publish(name, "known now");
    expect(await submitAll(names)).toEqual(["SUCCESS", "SUCCESS"]);
  });

  it("does not keep other callers from their refusals, whether or not the topic exists", async () => {
    engine = await TestEngine.start({
      append: async () => {
        throw new BrokerError("transactionFailed");
      },
    });
    await engine.broker.open(topic("a"));
    expect(await submitAll(["a", "a", "a"])).toEqual(["REFUSED", "REFUSED"]);
    expect(await submitAll(["none", "none", "none"])).toEqual(["REFUSED", "REFUSED"]);
  });
});
