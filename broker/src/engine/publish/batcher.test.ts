import { BrokerError } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import type { Ledger } from "../../ports/ledger.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const topic = (name: string) => ({ topic: name, groupId: undefined });

/**
 * Starts the engine on a chain whose transactions hold at most `bytesMax` bytes of events; the engine does not know that limit. An append throws if `fails`
 * returns true for the events of a batch. `sizes` gets the number of events of each transaction, `atomics` whether the chain must commit all batches or none.
 */
async function startNarrow(
  bytesMax: number,
  fails: (texts: string) => boolean = () => false,
): Promise<{ sizes: number[]; atomics: Set<boolean | undefined> }> {
  const chain = new MemoryChain({ clock: new VirtualClock() });
  const ledger = createMemoryLedger({ groupId: defaultGroupId, chain, isFinal: true, confirmations: 0 });
  await ledger.start();
  const sizes: number[] = [];
  const atomics = new Set<boolean | undefined>();
  const append: Ledger["append"] = async (batches, signal, options) => {
    atomics.add(options?.isAtomic);
    const encoded = batches.map(({ events }) => Buffer.from(events));
    if (encoded.reduce((sum, { length }) => sum + length, 0) > bytesMax) {
      return batches.map(() => ({ status: "too-large" }));
    }
    if (encoded.some((bytes) => fails(bytes.toString("latin1")))) throw new BrokerError("chainUnreachable");
    sizes.push(batches.reduce((sum, { count }) => sum + count, 0));
    return ledger.append(batches, signal);
  };
  engine = await TestEngine.start({ chain, append });
  return { sizes, atomics };
}

describe("a chain that takes only small transactions", () => {
  it("gets smaller transactions, with the events in order", async () => {
    const { sizes, atomics } = await startNarrow(100);
    for (const name of ["a", "b"]) await engine.broker.open(topic(name));
    const texts = Array.from({ length: 40 }, (_, index) => `event number ${index}`);
    const ids = await Promise.all(texts.map((text, index) => engine.publish(index % 2 === 0 ? "a" : "b", text)));
    const events = await Promise.all(ids.map((eventId) => engine.broker.getEvent({ eventId, groupId: undefined })));
    expect(events.map(({ content }) => Buffer.from(content).toString())).toEqual(texts);
    expect(events.map(({ sequence }) => sequence)).toEqual(texts.map((_, index) => Math.floor(index / 2) + 1));
    expect(sizes.length).toBeGreaterThan(4);
    expect([...atomics]).toEqual([false]); // A refused batch does not undo the others.
  });

  it("keeps the order of a topic even if its later events fit into a transaction and its earlier ones do not", async () => {
    await startNarrow(100);
    await engine.broker.open(topic("a"));
    const texts = [1, 2, 3, 4, 5, 6, 7, 8].map((index) => `${index}`.repeat(index <= 4 ? 40 : 5));
    const ids = await Promise.all(texts.map((text) => engine.publish("a", text)));
    expect(ids.map((id) => Number(id.split("-")[1]))).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it("keeps the order of a topic when several transactions in progress are too large", async () => {
    await startNarrow(6_000);
    await engine.broker.open(topic("a"));
    const texts = Array.from({ length: 4_200 }, (_, index) => String(index));
    const ids = await Promise.all(texts.map((text) => engine.publish("a", text)));
    expect(ids.map((id) => Number(id.split("-")[1]))).toEqual(texts.map((_, index) => index + 1));
  });

  it("gets no more parts of a transaction at once than may be in flight", async () => {
    const chain = new MemoryChain({ clock: new VirtualClock() });
    const ledger = createMemoryLedger({ groupId: defaultGroupId, chain });
    await ledger.start();
    const inFlight: number[] = [];
    let running = 0;
    const append: Ledger["append"] = async (batches, signal) => {
      if (batches.length > 1) return batches.map(() => ({ status: "too-large" }));
      inFlight.push((running += 1));
      await new Promise<void>((resolve) => void engine.clock.after(10, resolve));
      running -= 1;
      return ledger.append(batches, signal);
    };
    const limits = { eventsPerTransactionMax: 99, bytesPerTransactionMax: 9_999, bytesPerTopic: 0 };
    engine = await TestEngine.start({ chain, append, ledgerLimits: { ...limits, transactionsInFlightMax: 2 } });
    const names = Array.from({ length: 16 }, (_, index) => `topic ${index}`);
    for (const name of names) await engine.broker.open(topic(name));
    const published = Promise.all(names.map((name) => engine.publish(name, "x")));
    await engine.clock.advance(1_000);
    expect(await published).toHaveLength(names.length);
    expect([inFlight.length, Math.max(...inFlight)]).toEqual([names.length, 2]);
  });

  it("refuses the one event that fits into no transaction, and commits its neighbours", async () => {
    await startNarrow(100);
    await engine.broker.open(topic("a"));
    const answers = await Promise.allSettled(
      ["before", "x".repeat(200), "after"].map((text) => engine.publish("a", text)),
    );
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(answers[1]).toMatchObject({ reason: { code: 100201, message: expect.stringContaining("does not fit") } });
  });

  it("answers each event by the outcome of its part when a split transaction fails in part", async () => {
    await startNarrow(60, (bytes) => bytes.includes("bad"));
    await engine.broker.open(topic("a"));
    const texts = ["good good good good", "also good also good", "bad bad bad bad bad", "and bad and bad and"];
    const answers = await Promise.allSettled(texts.map((text) => engine.publish("a", text)));
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "rejected"]);
    expect(answers[3]).toMatchObject({ reason: { code: 200205 } });
  });
});

/** An append that hangs until its deadline. */
const hang: Ledger["append"] = (_, signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(new BrokerError("transactionTimeout")));
  });

describe("an event that enters no transaction", () => {
  const limits = { transactionTimeoutMs: 1_000 };
  const ledgerLimits = {
    eventsPerTransactionMax: 2,
    bytesPerTransactionMax: 1_000,
    bytesPerTopic: 0,
    transactionsInFlightMax: 1,
  };

  it("is refused after the queue timeout, and so is a later event of its draft", async () => {
    engine = await TestEngine.start({ append: hang, limits, ledgerLimits });
    await engine.broker.open(topic("a"));
    const answers: string[] = [];
    const publish = (text: string): void => {
      engine.publish("a", text).then(
        (answer) => answers.push(`${text} ${answer}`),
        (error: unknown) => answers.push(`${text} ${(error as BrokerError).code}`),
      );
    };
    for (const text of ["under way", "under way"]) publish(text);
    await engine.clock.advance(10);
    for (const text of ["next", "next"]) publish(text);
    await engine.clock.advance(10);
    publish("first");
    await engine.clock.advance(990);
    publish("behind");
    await engine.clock.advance(20);
    expect(answers).toEqual(["under way TIMEOUT", "under way TIMEOUT", "first 200300", "behind 200300"]);
  });
});

/** Publishes to two topics in turn. */
function publishMany(count: number): Promise<readonly string[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => engine.publish(index % 2 === 0 ? "a" : "b", "x")));
}

describe("many callers that publish again at the same moment", () => {
  it("share two transactions, which keep the order within each topic", async () => {
    const { sizes } = await startNarrow(1_000_000);
    for (const name of ["a", "b"]) await engine.broker.open(topic(name));
    await publishMany(600);
    const ids = await publishMany(600);
    expect(sizes).toEqual([600, 300, 300]);
    expect(ids.map((id) => Number(id.split("-")[1]))).toEqual(ids.map((_, index) => 301 + Math.floor(index / 2)));
  });
});
