import { BrokerError } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { type Ledger, MayNotStartError } from "../../ports/ledger.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { PublishCall, PublishOutcome, PublishResult } from "../broker.ts";
import { contentsOnChain } from "../testing/contents-on-chain.ts";
import { keyedCall, keyedTopic, refusal, sendKeyed } from "../testing/keyed-publish.ts";
import { publish } from "../testing/publish.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const topic = keyedTopic;
const call = keyedCall;
const send = (one: PublishCall): Promise<PublishResult> => sendKeyed(engine, one);

async function start(options: TestEngineOptions = {}): Promise<void> {
  engine = await TestEngine.start(options);
  await engine.broker.open(topic);
}

/** A publish that carries the trace context of a span. */
function traced(span: number): PublishCall {
  const trace = `00-${"a".repeat(32)}-${String(span).padStart(16, "0")}-01`;
  return call("k", "text", { extensions: [["svc-traceparent", trace]] });
}

/** A chain; `state.next` says how its next append ends. */
function createFailingChain(clock = new VirtualClock()) {
  const chain = new MemoryChain({ clock });
  const ledger = createMemoryLedger({ groupId: defaultGroupId, chain });
  const state: { next: "commit" | "commit, then time out" | "time out" | "refuse" | "forbid"; appends: number } = {
    next: "commit",
    appends: 0,
  };
  const append: Ledger["append"] = async (batches, signal) => {
    await ledger.start();
    state.appends += 1;
    const { next } = state;
    state.next = "commit";
    if (next === "refuse") throw new BrokerError("transactionFailed");
    if (next === "forbid") throw new BrokerError("transactionFailed", { cause: new MayNotStartError() });
    const outcomes = next === "time out" ? [] : await ledger.append(batches, signal);
    if (next !== "commit") throw new BrokerError("transactionTimeout");
    return outcomes;
  };
  return { chain, append, state };
}

const timeOut = async (): Promise<never> => {
  throw new BrokerError("transactionTimeout");
};

describe("a publish with a key", () => {
  it("returns the same event when repeated, even after a restart", async () => {
    await start();
    const first = await send(call("k"));
    expect(first.status).toBe("SUCCESS");
    expect(await send(call("k"))).toEqual(first);
    await engine.rebuild();
    await engine.broker.start();
    expect(await send(call("k"))).toEqual(first);
    expect(contentsOnChain(engine)).toEqual(["text"]);
  });

  it("returns the same event when repeated after the prefix of extensions has changed", async () => {
    await start();
    const first = await send(call("k"));
    engine.extensionPrefix = "x-";
    await engine.rebuild();
    await engine.broker.start();
    expect(await send(call("k"))).toEqual(first);
    expect(contentsOnChain(engine)).toEqual(["text"]);
  });

  it.each([
    ["content", { contentBytesMax: 10 }, refusal("contentTooLong")],
    ["extensions", { extensionsBytesMax: 10 }, refusal("extensionsTooLong")],
  ])("returns the same event when repeated after the limit of %s was lowered below it", async (_, limits, error) => {
    const [chain, store] = [new MemoryChain({ clock: new VirtualClock() }), createMemoryStore()];
    const long = call("k", "x".repeat(20), { extensions: [["svc-a", "y".repeat(20)]] });
    await start({ chain, store });
    const first = await send(long);
    await engine.stop();
    engine = await TestEngine.start({ chain, store, limits });
    expect(await send(long)).toEqual(first);
    await expect(send({ ...long, key: "other" })).rejects.toEqual(error);
    expect(contentsOnChain(engine)).toEqual(["x".repeat(20)]);
  });

  it("carries a token as an extension", async () => {
    await start();
    const { eventId } = await send(call("k", "text", { extensions: [["svc-a", "1"]] }));
    const { extensions } = await engine.broker.getEvent({ eventId, groupId: undefined });
    expect(extensions).toEqual([
      ["svc-a", "1"],
      ["svc-token", expect.stringMatching(/^[0-9a-f-]{36}$/)],
    ]);
  });

  it("returns the same event to a repeat that is part of another trace, even after a time-out", async () => {
    const { chain, append, state } = createFailingChain();
    await start({ chain, append });
    state.next = "commit, then time out";
    const first = await send(traced(1));
    const second = await send(traced(2));
    expect([first.status, second.status]).toEqual(["TIMEOUT", "SUCCESS"]);
    expect(await send(traced(3))).toEqual(second);
    expect(contentsOnChain(engine)).toEqual(["text"]);
  });

  it("returns the same answer as repeats that arrive while it is in progress", async () => {
    await start();
    const answers = Promise.all([1, 2, 3].map(() => publish(engine.broker, call("k"))));
    await engine.clock.settle();
    expect(new Set((await answers).map(({ eventId }) => eventId)).size).toBe(1);
    expect(contentsOnChain(engine)).toEqual(["text"]);
  });

  it("answers all waiting callers, even if the callback of one throws", async () => {
    await start();
    const answers: PublishOutcome[] = [];
    for (const key of ["k", "k"]) {
      engine.broker.submit(call(key), () => {
        throw new Error("connection lost");
      });
      engine.broker.submit(call(key), (outcome) => answers.push(outcome));
      await engine.clock.advance(70_000);
    }
    expect(answers).toMatchObject([{ status: "SUCCESS" }, { status: "SUCCESS" }]);
    expect(contentsOnChain(engine)).toEqual(["text"]);
  });

  it("is refused if the key belongs to another request, in progress or done", async () => {
    await start();
    const first = publish(engine.broker, call("k"));
    expect(() => engine.broker.submit(call("k", "other"), () => {})).toThrow(refusal("publishKeyReused"));
    await engine.clock.settle();
    await first;
    await engine.broker.open({ ...topic, topic: "b" });
    await expect(send(call("k", "other"))).rejects.toEqual(refusal("publishKeyReused"));
    await expect(send(call("k", "text", { topic: "b" }))).rejects.toEqual(refusal("publishKeyReused"));
    await expect(send(call("k", "text", { extensions: [["svc-a", "1"]] }))).rejects.toEqual(
      refusal("publishKeyReused"),
    );
    expect(contentsOnChain(engine)).toEqual(["text"]);
  });

  it.each(["", " ", "a b", "a,b, c", "ä", "a\n", "a".repeat(256), "\u007f"])(
    "is refused with the key %j",
    async (key) => {
      await start();
      expect(() => engine.broker.submit(call(key), () => {})).toThrow(refusal("parameterInvalid"));
    },
  );

  it("is accepted with the longest key, and with every visible character", async () => {
    await start();
    const visible = String.fromCharCode(...Array.from({ length: 94 }, (_, index) => 0x21 + index));
    for (const key of ["a".repeat(255), visible]) expect((await send(call(key))).status).toBe("SUCCESS");
  });

  it("is refused if it sets the token itself, or if its extensions leave no room for the token", async () => {
    await start({ limits: { extensionsBytesMax: 60 } });
    const tooLong = call("k", "text", { extensions: [["svc-a", "x".repeat(20)]] });
    const own = call("k", "text", { extensions: [["svc-token", "mine"]] });
    expect(() => engine.broker.submit(own, () => {})).toThrow(refusal("parameterInvalid"));
    await expect(send(tooLong)).rejects.toEqual(refusal("extensionsTooLong"));
    expect((await send({ ...own, key: undefined })).status).toBe("SUCCESS");
  });

  it.each([
    ["refuse", "transactionFailed"],
    ["forbid", "storeUnreachable"],
  ] as const)("releases its key after a refusal that says that nothing was published: %s, %s", async (next, name) => {
    const { chain, append, state } = createFailingChain();
    await start({ chain, append });
    state.next = next;
    await expect(send(call("k", "first"))).rejects.toEqual(refusal(name));
    expect((await send(call("k", "second"))).status).toBe("SUCCESS");
    expect(contentsOnChain(engine)).toEqual(["second"]);
  });

  it("returns the event of its first request after the topic was closed, while a new key is refused", async () => {
    await start();
    const first = await send(call("k"));
    await engine.broker.close(topic);
    await engine.clock.settle();
    expect(await send(call("k"))).toEqual(first);
    await expect(send(call("other"))).rejects.toEqual(refusal("topicClosed"));
  });
});

describe("a publish with a key whose fate was unknown", () => {
  it.each(["commit, then time out", "time out"] as const)("gives one event when repeated (%s)", async (next) => {
    const { chain, append, state } = createFailingChain();
    await start({ chain, append });
    state.next = next;
    expect((await send(call("k"))).status).toBe("TIMEOUT");
    const repeat = await send(call("k"));
    expect(repeat.status).toBe("SUCCESS");
    expect(await send(call("k"))).toEqual(repeat);
    expect(contentsOnChain(engine)).toEqual(["text"]);
  });

  it("returns TIMEOUT while the transaction may still be included, and its event afterwards", async () => {
    const { chain, append, state } = createFailingChain();
    await start({ chain, append });
    state.next = "time out";
    await send(call("k"));
    const row = await engine.store.findPublishKey({ groupId: defaultGroupId, scope: "", key: "k" });
    if (row === undefined || "isDamaged" in row) throw new Error("the key has no row");
    engine.settles = false;
    expect((await send(call("k"))).status).toBe("TIMEOUT");
    const late = publish(engine.broker, call("k"));
    await engine.clock.advance(1_000);
    // The chain includes the lost transaction after all.
    await publish(engine.broker, call(undefined, "text", { extensions: [["svc-token", row.token]] }));
    await engine.clock.advance(1_000);
    expect((await late).status).toBe("SUCCESS");
    expect(contentsOnChain(engine)).toEqual(["text"]);
  });
});

describe("limits and batches of publishes with keys", () => {
  it("refuses a publish with a key when too many bytes wait for the outcome of earlier requests", async () => {
    await start({ append: timeOut, limits: { publishBytesWaitingMax: 1_000 } });
    const calls = Array.from({ length: 7 }, (_, index) => call(`k${index}`, "x".repeat(300)));
    for (const one of calls) expect((await send(one)).status).toBe("TIMEOUT");
    engine.settles = false;
    const answers: PublishOutcome[] = [];
    const repeat = async (one: PublishCall): Promise<void> => {
      engine.broker.submit(one, (outcome) => answers.push(outcome));
      await engine.clock.settle();
    };
    for (const one of calls.slice(0, 6)) await repeat(one);
    await expect(repeat(calls[6] ?? call("k6"))).rejects.toEqual(refusal("busy"));
    await repeat(call("k0", "x".repeat(300))); // joins a publish that waits
    await engine.clock.advance(70_000);
    expect(answers.map(({ status }) => status)).toEqual(Array(7).fill("TIMEOUT"));
    await repeat(calls[6] ?? call("k6"));
  });

  it("records the keys of a transaction in one write before the ledger gets it, and writes nothing without keys", async () => {
    const store = createMemoryStore();
    const writes: number[] = [];
    const { chain, append, state } = createFailingChain();
    const record = store.recordPublishKeys.bind(store);
    store.recordPublishKeys = (rows) => {
      writes.push(rows.length, state.appends);
      return record(rows);
    };
    await start({ store, chain, append });
    await engine.publishMany("a", 3);
    expect(writes).toEqual([]);
    const { appends } = state;
    const answers = Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        publish(engine.broker, call(index % 2 ? `k${index}` : undefined, `${index}`)),
      ),
    );
    await engine.clock.settle();
    await answers;
    expect(writes).toEqual([25, appends]);
    expect(state.appends).toBe(appends + 1);
  });

  it("keeps the order of a topic when keys are recorded slowly", async () => {
    const store = createMemoryStore();
    const record = store.recordPublishKeys.bind(store);
    store.recordPublishKeys = async (rows) => {
      await new Promise<void>((resolve) => void engine.clock.after(500, resolve));
      return record(rows);
    };
    await start({ store });
    const order: string[] = [];
    const submit = (text: string, key?: string) => engine.broker.submit(call(key, text), () => order.push(text));
    submit("1", "k1");
    await engine.clock.advance(200);
    submit("2");
    await engine.clock.advance(200);
    submit("3", "k3");
    submit("4");
    await engine.clock.advance(5_000);
    expect(contentsOnChain(engine)).toEqual(["1", "2", "3", "4"]);
    expect(order).toEqual(["1", "2", "3", "4"]);
  });

  it("removes repeats from a transaction and commits the others in order", async () => {
    await start();
    for (const key of ["k1", "k3"]) await send(call(key, key));
    const outcomes: PublishOutcome[] = [];
    for (const key of ["k0", "k1", "k2", "k3", "k4"]) engine.broker.submit(call(key, key), (one) => outcomes.push(one));
    await engine.clock.advance(1_000);
    expect(contentsOnChain(engine)).toEqual(["k1", "k3", "k0", "k2", "k4"]);
    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: 5 }, () => "SUCCESS"));
  });

  it("refuses only publishes with a key when keys cannot be recorded", async () => {
    const store = createMemoryStore();
    store.recordPublishKeys = () => Promise.reject(new BrokerError("storeUnreachable"));
    await start({ store });
    const named = publish(engine.broker, call("k", "named"));
    const plain = publish(engine.broker, call(undefined, "plain"));
    named.catch(() => {});
    await engine.clock.settle();
    await expect(named).rejects.toEqual(refusal("storeUnreachable"));
    expect((await plain).status).toBe("SUCCESS");
    expect(contentsOnChain(engine)).toEqual(["plain"]);
  });

  it("refuses publishes with a key when the store does not answer in time", async () => {
    const store = createMemoryStore();
    store.recordPublishKeys = () => new Promise(() => {});
    await start({ store });
    await expect(send(call("k"))).rejects.toEqual(refusal("busy"));
    expect(contentsOnChain(engine)).toEqual([]);
  });
});

describe("after a reorg", () => {
  it.each([30_000, 100])("a repeat publishes an event again that the reorg removed (timeout %i)", async (timeoutMs) => {
    await start({ confirmations: 0, limits: { transactionTimeoutMs: timeoutMs } });
    await send(call("k"));
    engine.chain.cutBack(engine.chain.head - 1);
    engine.chain.sealEmpty();
    await engine.clock.settle();
    expect(contentsOnChain(engine)).toEqual([]);
    const again = await send(call("k"));
    expect(await send(call("k"))).toEqual(again);
    expect(contentsOnChain(engine)).toEqual(["text"]);
  });

  it("a repeat finds an event that the reorg moved to an earlier block, and does not publish it again", async () => {
    await start({ confirmations: 0 });
    const before = engine.chain.head;
    for (let block = 0; block < 5; block += 1) engine.chain.sealEmpty();
    await engine.clock.settle();
    await send(call("k"));
    const row = await engine.store.findPublishKey({ groupId: defaultGroupId, scope: "", key: "k" });
    if (row === undefined || "isDamaged" in row) throw new Error("the key has no row");
    engine.chain.cutBack(before);
    await engine.clock.settle();
    const back = await publish(engine.broker, call(undefined, "text", { extensions: [["svc-token", row.token]] }));
    expect(await send(call("k"))).toEqual(back);
    expect(contentsOnChain(engine)).toEqual(["text"]);
  });
});
