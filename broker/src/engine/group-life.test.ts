import { BrokerError, errorCatalogue } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import { type GroupId, parseGroupId } from "../domain/group-id.ts";
import { MemoryChain } from "../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../ledger/memory/memory-ledger.ts";
import { createDeferred } from "../lib/deferred.ts";
import type { LogFields, Logger } from "../lib/logger.ts";
import type { Ledger, Outage } from "../ports/ledger.ts";
import { noMetrics } from "../ports/metrics.ts";
import type { Store } from "../ports/store.ts";
import { createMemoryStore } from "../store/memory/memory-store.ts";
import { createBroker } from "./create-broker.ts";
import { asCaller, type CalledBroker } from "./testing/as-caller.ts";
import { defaultEngineLimits } from "./limits.ts";
import { RecordingSink } from "./testing/recording-sink.ts";
import { VirtualClock } from "../ports/testing/virtual-clock.ts";
import { publish } from "./testing/publish.ts";

const one = parseGroupId("1");
const two = parseGroupId("2");
const unreachable = errorCatalogue.chainUnreachable.code;

/** A group on a chain in memory whose start can fail (`failure`), and which can report an outage. */
class TestGroup {
  readonly chain: MemoryChain;
  readonly ledger: Ledger;
  failure: Error | undefined;
  outage: Outage | undefined;
  starts = 0;

  constructor(groupId: GroupId, options: { readonly chain: MemoryChain; readonly isFinal: boolean }) {
    this.chain = options.chain;
    this.ledger = createMemoryLedger({ groupId, ...options });
    const start = this.ledger.start.bind(this.ledger);
    const view = this.ledger.view.bind(this.ledger);
    this.ledger.view = () => ({ ...view(), outage: this.outage });
    this.ledger.start = async () => {
      this.starts += 1;
      if (this.failure !== undefined) throw this.failure;
      await start();
    };
  }
}

let lines: LogFields[];
let clock: VirtualClock;
let sink: RecordingSink;
let broker: CalledBroker;
afterEach(async () => stop());

async function stop(): Promise<void> {
  const stopped = broker.stop(1000);
  await clock.advance(1000);
  await stopped;
}

/** Records each line with its own fields and those of its parent loggers. */
function createRecordingLogger(inherited: LogFields = {}): Logger {
  const note = (message: string, fields: LogFields = {}): void => {
    lines.push({ ...inherited, ...fields, message });
  };
  const child = (fields: LogFields): Logger => createRecordingLogger({ ...inherited, ...fields });
  return { debug: note, info: note, warn: note, error: note, child };
}

/**
 * Builds a broker with two groups on chains in memory. The engine treats the chain of group 1 as embedded, because `isFinal` is true, and that of group 2 as an
 * outside one. Uses the chains and the store of an earlier broker if given.
 */
function build(
  earlier: {
    readonly chains?: readonly MemoryChain[];
    readonly store?: Store;
    readonly publishTimeoutMs?: number;
  } = {},
): readonly [TestGroup, TestGroup] {
  if (earlier.chains === undefined) clock = new VirtualClock();
  sink = new RecordingSink();
  lines = [];
  let uuids = 0;
  const [first = new MemoryChain({ clock }), second = new MemoryChain({ clock })] = earlier.chains ?? [];
  const groups = [
    new TestGroup(one, { chain: first, isFinal: true }),
    new TestGroup(two, { chain: second, isFinal: false }),
  ] as const;
  Object.assign(groups[1].ledger, { publishTimeoutMs: earlier.publishTimeoutMs });
  const running = createBroker({
    ledgers: groups.map(({ ledger }) => ledger),
    store: earlier.store ?? createMemoryStore(),
    sink,
    clock,
    randomness: {
      fraction: () => 0,
      bytes: (count) => new Uint8Array(count),
      uuid: () => `00000000-0000-4000-8000-${String((uuids += 1)).padStart(12, "0")}`,
    },
    metrics: noMetrics,
    logger: createRecordingLogger(),
    limits: defaultEngineLimits,
    defaultGroupId: one,
    extensionPrefix: "svc-",
    hasCoordinator: true,
  });
  broker = asCaller(running);
  return groups;
}

/** Starts the broker, and advances the clock until the start returns. */
async function start(): Promise<void> {
  const started = broker.start();
  await clock.advance(defaultEngineLimits.startWaitMs);
  await started;
}

const healthOf = (groupId: GroupId) => broker.health().find((group) => group.groupId === groupId);
const content = new Uint8Array([1]);
const call = {
  topic: "a",
  format: "RESTful",
  subscriptionId: undefined,
  offset: undefined,
  secret: undefined,
} as const;
const unreached = new BrokerError("chainUnreachable", { details: "http://two: the connection was refused" });

describe("a group whose chain does not answer at the start", () => {
  it("does not stop other groups; it answers 200205 with the reason, and recovers by itself", async () => {
    const [, away] = build();
    away.failure = unreached;
    await start();
    await broker.open({ topic: "a", groupId: "1" });
    const message = "chain cannot be reached: group 2 is not up: http://two: the connection was refused";
    await expect(broker.open({ topic: "a", groupId: "2" })).rejects.toMatchObject({ code: unreachable, message });
    await expect(broker.list({ pageIndex: 0, pageSize: 10, groupId: "2" })).rejects.toMatchObject({
      code: unreachable,
    });
    expect(healthOf(one)).toMatchObject({ ready: true });
    expect(healthOf(two)).toMatchObject({ ready: false, reason: "http://two: the connection was refused" });
    away.failure = undefined;
    await clock.advance(defaultEngineLimits.startDelayMsMax);
    expect(healthOf(two)).toMatchObject({ ready: true, reason: undefined });
    await broker.open({ topic: "a", groupId: "2" });
  });

  it("every log line about a group has its groupId", async () => {
    const [own, away] = build();
    const store = createMemoryStore();
    await start();
    for (const groupId of ["1", "2"]) await broker.open({ topic: "a", groupId });
    await stop();
    build({ chains: [own.chain, away.chain], store })[1].failure = unreached;
    await start();
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ message: "index catching up", groupId: "1", to: own.chain.head }),
        expect.objectContaining({ message: "group ready", groupId: "1" }),
        expect.objectContaining({ message: "group not started, trying again", groupId: "2" }),
      ]),
    );
    expect(lines.filter(({ groupId }) => groupId === undefined)).toEqual([]);
  });

  it("delivers nothing to its subscriptions until it has started", async () => {
    const store = createMemoryStore();
    const chains = build({ store }).map(({ chain }) => chain);
    await start();
    sink.receive("http://two/", () => ({ status: "failed", reason: "closed for the night" }));
    await broker.open({ topic: "a", groupId: "2" });
    const id = await broker.subscribe({ ...call, groupId: "2", url: "http://two/" });
    await publish(broker, { topic: "a", groupId: "2", content, extensions: [] });
    await stop();
    const [, away] = build({ store, chains });
    away.failure = unreached;
    await start();
    expect(sink.sequencesOf(id)).toEqual([]);
    away.failure = undefined;
    await clock.advance(defaultEngineLimits.startDelayMsMax);
    expect(sink.sequencesOf(id)).toEqual([1]);
  });

  it("is retried endlessly, every 5 seconds after the first minute", async () => {
    const [, away] = build();
    away.failure = new Error("anything");
    await start();
    await clock.advance(60_000);
    const before = away.starts;
    await clock.advance(50_000);
    expect(away.starts - before).toBe(10);
    expect(healthOf(two)?.reason).toBe("anything");
  });

  it("fails the start of the broker if its chain is in this process", async () => {
    const [own] = build();
    own.failure = new Error("chain.sqlite is damaged");
    await expect(broker.start()).rejects.toThrow("chain.sqlite is damaged");
  });

  it("is not ready while its chain is silent, and does not block a stop of the broker", async () => {
    const [, away] = build();
    away.ledger.start = async () => new Promise(() => {});
    await start();
    expect(healthOf(two)).toMatchObject({ ready: false, reason: "its chain has not answered yet" });
    await expect(stop()).resolves.toBeUndefined();
  });
});

describe("a group that is being indexed", () => {
  it("is not ready and refuses calls until its index has caught up", async () => {
    const [, away] = build();
    away.chain.open("a", `0x${"11".repeat(20)}`);
    const { follow } = away.ledger;
    const held = createDeferred<void>();
    away.ledger.follow = async function* (...call) {
      await held.promise;
      yield* follow.apply(away.ledger, call);
    };
    await start();
    expect(healthOf(two)).toMatchObject({ ready: false, reason: "its index is catching up with the chain" });
    await expect(broker.state({ topic: "a", groupId: "2" })).rejects.toMatchObject({ code: unreachable });
    held.resolve();
    await clock.settle();
    expect(await broker.state({ topic: "a", groupId: "2" })).toMatchObject({ name: "a" });
  });
});

describe("an outage after the start", () => {
  it("does not affect reads, and health reports it only if it lasts", async () => {
    const [, away] = build();
    await start();
    await broker.open({ topic: "a", groupId: "2" });
    away.outage = { reason: "http://two: no answer within 15000 ms", since: clock.now() };
    expect(healthOf(two)).toMatchObject({ ready: true });
    await clock.advance(defaultEngineLimits.outageToleranceMs);
    expect(healthOf(two)).toMatchObject({ ready: false, reason: "http://two: no answer within 15000 ms" });
    expect(await broker.exist({ topic: "a", groupId: "2" })).toBe(true);
    away.outage = undefined;
    expect(healthOf(two)).toMatchObject({ ready: true });
  });
});

describe("a group with a publish timeout of its own", () => {
  it("answers TIMEOUT after its own timeout, and other groups after theirs", async () => {
    const groups = build({ publishTimeoutMs: 120_000 });
    await start();
    const answers: unknown[] = [];
    for (const { ledger } of groups) {
      await broker.open({ topic: "a", groupId: ledger.groupId });
      ledger.append = (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new BrokerError("transactionTimeout")), { once: true });
        });
      const call = { topic: "a", groupId: ledger.groupId, content, extensions: [] };
      void publish(broker, call).then(({ status }) => answers.push([ledger.groupId, status]));
    }
    await clock.advance(119_000);
    expect(answers).toEqual([["1", "TIMEOUT"]]);
    await clock.advance(1_000);
    expect(answers).toEqual([
      ["1", "TIMEOUT"],
      ["2", "TIMEOUT"],
    ]);
  });
});

describe("two groups", () => {
  it("share nothing: topics, sequences, events and subscriptions are each group's own", async () => {
    build();
    await start();
    const publishTo = (groupId: string) => publish(broker, { topic: "a", groupId, content, extensions: [] });
    for (const groupId of ["1", "2"]) await broker.open({ topic: "a", groupId });
    const first = await broker.subscribe({ ...call, groupId: "1", url: "http://one/" });
    const second = await broker.subscribe({ ...call, groupId: "2", url: "http://two/" });
    for (const groupId of ["1", "1", "2"]) await publishTo(groupId);
    await clock.settle();
    expect(sink.sequencesOf(first)).toEqual([1, 2]);
    expect(sink.sequencesOf(second)).toEqual([1]);
    expect(await broker.state({ topic: "a", groupId: "2" })).toMatchObject({ sequence: 1 });
    await expect(
      broker.subscribe({ ...call, groupId: "2", subscriptionId: first, url: "http://one/" }),
    ).rejects.toMatchObject({
      code: errorCatalogue.subscriptionElsewhere.code,
    });
    await expect(broker.open({ topic: "a", groupId: "3" })).rejects.toMatchObject({
      code: errorCatalogue.groupUnknown.code,
    });
  });

  it("cannot share a transaction: the broker refuses it, and commits no event in either group", async () => {
    build();
    await start();
    for (const groupId of ["1", "2"]) await broker.open({ topic: "a", groupId });
    const calls = ["1", "2"].map((groupId) => ({ topic: "a", groupId, content, extensions: [] }));
    expect(() => broker.submitAll(calls, () => {})).toThrow(
      expect.objectContaining({ code: errorCatalogue.parameterInvalid.code }),
    );
    await clock.settle();
    for (const groupId of ["1", "2"])
      expect(await broker.state({ topic: "a", groupId })).toMatchObject({ sequence: 0 });
  });
});
