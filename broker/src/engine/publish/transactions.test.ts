import { BrokerError } from "@stele/wire";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import type { Ledger } from "../../ports/ledger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { PublishCall, TransactionOutcome } from "../broker.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const topic = (name: string) => ({ topic: name, groupId: undefined });

function call(name: string, text = "x"): PublishCall {
  return { ...topic(name), content: new TextEncoder().encode(text), extensions: [] };
}

async function start(options: TestEngineOptions = {}): Promise<void> {
  engine = await TestEngine.start(options);
  await engine.broker.open(topic("a"));
  await engine.broker.open(topic("b"));
}

function submitAll(...calls: readonly PublishCall[]): Promise<TransactionOutcome> {
  return new Promise((resolve) => engine.broker.submitAll(calls, resolve));
}

async function settled(outcome: Promise<TransactionOutcome>): Promise<TransactionOutcome> {
  const [result] = await Promise.all([outcome, engine.clock.settle()]);
  return result;
}

function codeOf(outcome: TransactionOutcome): number | string {
  if (outcome.status !== "REFUSED") return outcome.status;
  return outcome.error instanceof BrokerError ? outcome.error.code : "no BrokerError";
}

function thrown(task: () => unknown): number | undefined {
  try {
    task();
  } catch (error) {
    return error instanceof BrokerError ? error.code : undefined;
  }
  return undefined;
}

async function count(name: string): Promise<number> {
  return (await engine.broker.state(topic(name))).sequence;
}

describe("a transaction of publishes", () => {
  beforeEach(() => start());

  it("is one transaction of the chain that carries nothing else, and is answered in the order of its events", async () => {
    const before = engine.chain.head;
    engine.broker.submit(call("a", "before"), () => {});
    const outcome = settled(submitAll(call("a", "1"), call("b", "2"), call("a", "3")));
    engine.broker.submit(call("a", "after"), () => {});
    const { status, ...rest } = await outcome;
    expect(status).toBe("SUCCESS");
    const places =
      "results" in rest ? rest.results.map(({ topic: name, eventId }) => [name, eventId.split("-")[1]]) : [];
    expect(places.map(([name]) => name)).toEqual(["a", "b", "a"]);
    const [, own] = [0, 1].map((index) => engine.chain.find(before + 1 + index)?.entries ?? []);
    const committed = own?.map((entry) => (entry.kind === "events-committed" ? entry.count : 0));
    expect(committed).toEqual([2, 1]);
  });

  it("is refused as a whole if one topic is missing or closed", async () => {
    await engine.broker.close(topic("b"));
    expect(codeOf(await settled(submitAll(call("a"), call("b"))))).toBe(100112);
    expect(codeOf(await settled(submitAll(call("a"), call("nowhere"))))).toBe(100101);
    expect(await count("a")).toBe(0);
  });

  it("is refused as a whole if one publish is malformed, has a publish key, or names an unknown group", () => {
    const submit = (one: PublishCall): number | undefined =>
      thrown(() => engine.broker.submitAll([call("a"), one], () => {}));
    expect(submit(call("a", ""))).toBe(100200);
    expect(submit({ ...call("a"), key: "k" })).toBe(200001);
    expect(submit({ ...call("a"), groupId: "other" })).toBe(200211);
  });

  it("succeeds if it has no events", async () => {
    expect(await settled(submitAll())).toEqual({ status: "SUCCESS", results: [] });
  });
});

it("a transaction is refused as a whole if one of its topics is closed between the read of the topic and the commit", async () => {
  const store = createMemoryStore();
  const findTopic = store.findTopic.bind(store);
  const held: (() => void)[] = [];
  let isHolding = false;
  store.findTopic = async (groupId, name) => {
    const found = await findTopic(groupId, name);
    if (isHolding) await new Promise<void>((resolve) => void held.push(resolve));
    return found;
  };
  await start({ store });
  isHolding = true;
  const outcome = submitAll(call("a", "1"), call("b", "2"));
  await engine.clock.settle();
  expect(held).toHaveLength(2);
  isHolding = false;
  await Promise.all([engine.broker.close(topic("b")), engine.clock.settle()]);
  for (const release of held) release();
  expect(codeOf(await settled(outcome))).toBe(200202);
  expect(await count("a")).toBe(0);
  expect(await count("b")).toBe(0);
});

it("a transaction of publishes shares no transaction of the chain with other publishes", async () => {
  const sizes: number[] = [];
  const held: (() => void)[] = [];
  const append: Ledger["append"] = async (batches) => {
    sizes.push(batches.reduce((sum, { count: events }) => sum + events, 0));
    await new Promise<void>((resolve) => void held.push(resolve));
    return batches.map(() => ({ status: "rejected", reason: "closed-topic" }) as const);
  };
  const limits = {
    eventsPerTransactionMax: 9,
    bytesPerTransactionMax: 999,
    bytesPerTopic: 0,
    transactionsInFlightMax: 1,
  };
  await start({ append, ledgerLimits: limits });
  const outcomes: unknown[] = [];
  engine.broker.submit(call("a"), (outcome) => outcomes.push(outcome));
  await engine.clock.settle();
  engine.broker.submitAll([call("a"), call("b")], (outcome) => outcomes.push(outcome));
  await engine.clock.settle();
  engine.broker.submit(call("b"), (outcome) => outcomes.push(outcome));
  while (outcomes.length < 3) {
    for (const release of held.splice(0)) release();
    await engine.clock.advance(200);
  }
  expect(sizes).toEqual([1, 2, 1]);
});

it("refuses all events of a transaction if they do not fit into one transaction of the chain", async () => {
  const limits = {
    eventsPerTransactionMax: 3,
    bytesPerTransactionMax: 200,
    bytesPerTopic: 50,
    transactionsInFlightMax: 1,
  };
  await start({ ledgerLimits: limits });
  expect(codeOf(await settled(submitAll(call("a"), call("a"), call("a"))))).toBe("SUCCESS");
  expect(codeOf(await settled(submitAll(call("a"), call("a"), call("a"), call("a"))))).toBe(100201);
  expect(codeOf(await settled(submitAll(call("a", "x".repeat(80)), call("b", "x".repeat(80)))))).toBe(100201);
  expect(await count("a")).toBe(3);
});

it("refuses a transaction that is too large for the chain, and does not split it", async () => {
  const chain = new MemoryChain({ clock: new VirtualClock() });
  let appends = 0;
  const append: Ledger["append"] = async (batches) => {
    appends += 1;
    return batches.map(() => ({ status: "too-large" }) as const);
  };
  await start({ chain, append });
  expect(codeOf(await settled(submitAll(call("a"), call("a"))))).toBe(100201);
  expect(appends).toBe(1);
});

it("a transaction keeps its place among other publishes, and each of its events counts towards the limit of waiting ones", async () => {
  await start({ limits: { publishesWaitingMax: 3 } });
  const order: string[] = [];
  const note = (name: string) => () => order.push(name);
  engine.broker.submit(call("a", "1"), note("first"));
  engine.broker.submitAll([call("a", "2"), call("a", "3")], note("transaction"));
  await engine.clock.settle();
  engine.broker.submit(call("a", "4"), note("last"));
  await engine.clock.settle();
  expect(order).toEqual(["first", "transaction", "last"]);
  expect(codeOf(await settled(submitAll(...Array.from({ length: 4 }, () => call("a")))))).toBe(200300);
  expect(await count("a")).toBe(4);
});
