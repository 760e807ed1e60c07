import { BrokerError, type ErrorName, encodeEvents, errorCatalogue } from "@stele/wire";
import { afterEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../domain/group-id.ts";
import { isCallback, parseSubscriptionId } from "../domain/subscription.ts";
import type { AttemptOutcome } from "../ports/sink.ts";
import type { PublishCall } from "./broker.ts";
import { testCaller } from "./testing/as-caller.ts";
import { publish } from "./testing/publish.ts";
import { secretNamed } from "./testing/secret-named.ts";
import { TestEngine, type TestEngineOptions } from "./testing/test-engine.ts";

let engine: TestEngine;
async function start(options: TestEngineOptions = {}): Promise<TestEngine> {
  engine = await TestEngine.start(options);
  return engine;
}
afterEach(() => engine.stop());

const refusal = (name: ErrorName): unknown => expect.objectContaining({ code: errorCatalogue[name].code });
const topic = (name: string) => ({ topic: name, groupId: undefined });
const content = new Uint8Array([1, 2, 3]);

/** An append to a chain that never answers: fails with 200201 only when `signal` aborts. */
function untilAborted(_: unknown, signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(new BrokerError("transactionTimeout")), { once: true });
  });
}

/** The error that a call rejects with. */
function refused(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => "not refused",
    (error: unknown) => error,
  );
}

describe("topics", () => {
  it("are opened, closed and opened again, and keep their events", async () => {
    const { broker } = await start();
    expect(await broker.exist(topic("a"))).toBe(false);
    await broker.open(topic("a"));
    await broker.open(topic("a"));
    expect(await broker.exist(topic("a"))).toBe(true);
    const eventId = await engine.publish("a", "one");
    await broker.close(topic("a"));
    await broker.close(topic("a"));
    expect(await broker.exist(topic("a"))).toBe(true);
    await expect(engine.publish("a", "two")).rejects.toEqual(refusal("topicClosed"));
    expect((await broker.getEvent({ eventId, groupId: undefined })).sequence).toBe(1);
    await broker.open(topic("a"));
    await engine.publish("a", "three");
    expect(await broker.state(topic("a"))).toMatchObject({ name: "a", sequence: 2, closed: false });
  });

  it("that never existed can be neither closed nor described", async () => {
    const { broker } = await start();
    await expect(broker.close(topic("a"))).rejects.toEqual(refusal("topicNotExist"));
    await expect(broker.state(topic("a"))).rejects.toEqual(refusal("topicNotExist"));
  });

  it("are listed in pages in the order of opening; a page size outside 1…99 counts as 10", async () => {
    const { broker } = await start();
    for (let index = 0; index < 12; index += 1) await broker.open(topic(`t${index}`));
    const page = await broker.list({ pageIndex: 1, pageSize: 5, groupId: "" });
    expect(page).toMatchObject({ total: 12, pageIndex: 1, pageSize: 5 });
    expect(page.topics.map((row) => row.name)).toEqual(["t5", "t6", "t7", "t8", "t9"]);
    for (const pageSize of [0, 100, -1, Number.NaN, 1.5]) {
      expect((await broker.list({ pageIndex: 0, pageSize, groupId: undefined })).pageSize).toBe(10);
    }
    expect((await broker.list({ pageIndex: 99, pageSize: 99, groupId: undefined })).topics).toEqual([]);
    // A client's 2^53 + 1 or 2^51 + 0.3 arrives rounded: the message must not quote another number.
    for (const pageIndex of [-1, 0.5, Number.NaN, 2 ** 53, -(2 ** 60), 2 ** 51 + 0.3]) {
      const listed = broker.list({ pageIndex, pageSize: 10, groupId: undefined });
      await expect(listed).rejects.toThrow(/^page index is not an integer from 0: the largest is 2\^53 - 1$/);
    }
  });

  it("cannot be opened in a malformed or unknown group; a blank groupId means the default group", async () => {
    const { broker } = await start();
    await expect(broker.open({ topic: "a", groupId: "2" })).rejects.toEqual(refusal("groupUnknown"));
    await expect(broker.open({ topic: "a", groupId: "a b" })).rejects.toEqual(refusal("groupInvalid"));
    await broker.open({ topic: "a", groupId: " " });
    expect(await broker.exist({ topic: "a", groupId: "1" })).toBe(true);
  });
});

describe("publish", () => {
  it("returns an eventId that getEvent finds at once, with content and extensions unchanged", async () => {
    const { broker } = await start();
    await broker.open(topic("a"));
    const extensions = [
      ["svc-format", "json"],
      ["svc-b", "é"],
    ] as const;
    const { eventId } = await publish(broker, { ...topic("a"), content, extensions });
    expect(eventId).toMatch(/^ca978112-1-\d+$/);
    const event = await broker.getEvent({ eventId, groupId: undefined });
    expect(event).toMatchObject({ topic: "a", sequence: 1, eventId, extensions });
    expect([...event.content]).toEqual([1, 2, 3]);
  });

  const bad: readonly (readonly [string, Partial<PublishCall>, ErrorName])[] = [
    ["an unknown topic", { topic: "b" }, "topicNotExist"],
    ["a pattern", { topic: "a/#" }, "topicInvalidCharacter"],
    ["no content", { content: new Uint8Array() }, "contentBlank"],
    ["content over the limit", { content: new Uint8Array(65_537) }, "contentTooLong"],
    ["a key without the prefix", { extensions: [["format", "json"]] }, "extensionKeyInvalid"],
    ["extensions over the limit", { extensions: [["svc-a", "é".repeat(2046)]] }, "extensionsTooLong"],
  ];
  it.each(bad)("refuses %s and changes nothing", async (_, call, name) => {
    const { broker } = await start();
    await broker.open(topic("a"));
    await expect(publish(broker, { ...topic("a"), content, extensions: [], ...call })).rejects.toEqual(refusal(name));
    expect((await broker.state(topic("a"))).sequence).toBe(0);
  });

  it("accepts content and extensions at their limits", async () => {
    const { broker } = await start();
    await broker.open(topic("a"));
    const extensions = [["svc-a", "x".repeat(4096 - 5)]] as const;
    const result = await publish(broker, { ...topic("a"), content: new Uint8Array(65_536), extensions });
    expect(result.status).toBe("SUCCESS");
  });

  it("answers TIMEOUT when the fate of the transaction is not known in time", async () => {
    const { broker, clock } = await start({ append: untilAborted });
    await broker.open(topic("a"));
    const answer = publish(broker, { ...topic("a"), content, extensions: [] });
    await clock.advance(30_000);
    expect(await answer).toEqual({ topic: "a", eventId: "", status: "TIMEOUT" });
  });

  it("refuses publishes beyond the queue limit, and those that wait too long in the queue", async () => {
    const { broker, clock } = await start({
      append: (batches, signal, options) => {
        options?.onAccepted?.();
        return untilAborted(batches, signal);
      },
      limits: { publishesWaitingMax: 2, transactionTimeoutMs: 1_000, pipelineAfterMs: 0 },
    });
    await broker.open(topic("a"));
    const underWay: Promise<string>[] = [];
    for (let round = 0; round < 4; round += 1) {
      underWay.push(engine.publish("a", "x"));
      await clock.settle();
    }
    const waiting = [refused(engine.publish("a", "y")), refused(engine.publish("a", "y"))];
    await clock.settle();
    await expect(engine.publish("a", "z")).rejects.toEqual(refusal("busy"));
    await clock.advance(1_001);
    expect(await Promise.all(underWay)).toEqual(["TIMEOUT", "TIMEOUT", "TIMEOUT", "TIMEOUT"]);
    for (const error of await Promise.all(waiting)) expect(error).toEqual(refusal("busy"));
  });

  it("commits ten concurrent publishes in one block, in the order of each topic", async () => {
    const { broker, clock } = await start();
    for (const name of ["a", "b"]) await broker.open(topic(name));
    const ids = await Promise.all(
      Array.from({ length: 10 }, (_, index) => engine.publish(index % 2 === 0 ? "a" : "b", `${index}`)),
    );
    await clock.settle();
    const events = await Promise.all(ids.map((eventId) => broker.getEvent({ eventId, groupId: undefined })));
    expect(events.map((event) => new TextDecoder().decode(event.content))).toEqual("0123456789".split(""));
    expect(events.map((event) => event.sequence)).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    expect(new Set(events.map((event) => event.blockNumber)).size).toBe(1);
  });
});

describe("getEvent", () => {
  it("says whether an identifier is blank, too long, malformed, unknown or beyond the head", async () => {
    const { broker } = await start();
    await broker.open(topic("a"));
    const { eventId } = await publish(broker, { ...topic("a"), content, extensions: [] });
    const get = (text: string) => broker.getEvent({ eventId: text, groupId: undefined });
    await expect(get("")).rejects.toEqual(refusal("eventIdBlank"));
    await expect(get("1".repeat(43))).rejects.toEqual(refusal("eventIdTooLong"));
    for (const text of ["x", "ca978112-0-1", "ca978112-01-1", `${eventId} `, "CA978112-1-2", "ca978112-1-1e3"]) {
      await expect(get(text)).rejects.toEqual(refusal("eventIdIllegal"));
    }
    await expect(get(eventId.replace(/-1-/, "-2-"))).rejects.toEqual(refusal("eventNotExist"));
    await expect(get(eventId.replace("ca978112", "00000000"))).rejects.toEqual(refusal("eventNotExist"));
    await expect(get("ca978112-1-999999")).rejects.toEqual(refusal("eventBeyondHead"));
  });
});

describe("subscribe", () => {
  it("delivers the events that follow the subscribe, in order, by name and by pattern", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a/b"));
    await engine.publishMany("a/b", 3);
    const byName = await engine.subscribe("a/b");
    const byPattern = await engine.subscribe("a/+");
    await broker.open(topic("a/c"));
    await engine.publishMany("a/b", 3);
    await engine.publishMany("a/c", 2);
    await clock.settle();
    expect(sink.sequencesOf(byName)).toEqual([4, 5, 6]);
    expect(sink.sequencesOf(byPattern)).toEqual([4, 5, 6, 1, 2]);
  });

  it("starts at the requested offset", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a"));
    await engine.publish("a", "1");
    const second = await engine.publish("a", "2");
    await engine.publish("a", "3");
    const first = await engine.subscribe("a", { offset: "OFFSET_FIRST" });
    const last = await engine.subscribe("a", { offset: "OFFSET_LAST" });
    const after = await engine.subscribe("a", { offset: second });
    await engine.publish("a", "4");
    await clock.settle();
    expect(sink.sequencesOf(first)).toEqual([1, 2, 3, 4]);
    expect(sink.sequencesOf(last)).toEqual([4]);
    expect(sink.sequencesOf(after)).toEqual([3, 4]);
    await expect(engine.subscribe("a", { offset: "bogus" })).rejects.toEqual(refusal("eventIdIllegal"));
    await expect(engine.subscribe("a", { offset: "FIRST" })).rejects.toThrow(
      '"FIRST" is not OFFSET_FIRST, OFFSET_LAST or an',
    );
  });

  it("refuses an unknown topic, a bad pattern, a bad url, and an identifier that is not a UUID", async () => {
    const { broker } = await start();
    await broker.open(topic("a"));
    await expect(engine.subscribe("b")).rejects.toEqual(refusal("topicNotExist"));
    await expect(engine.subscribe("a/#/b")).rejects.toEqual(refusal("topicPatternInvalid"));
    await expect(engine.subscribe("a", { url: "ftp://x" })).rejects.toEqual(refusal("urlInvalid"));
    await expect(engine.subscribe("a", { subscriptionId: "x" })).rejects.toEqual(refusal("subscriptionIdInvalid"));
    await expect(engine.subscribe("a", { subscriptionId: " " })).rejects.toEqual(refusal("subscriptionIdBlank"));
    expect(await engine.listSubscriptions()).toEqual([]);
  });

  it("delivers every event since the cursor after a restart", async () => {
    const { broker, sink } = await start();
    await broker.open(topic("a"));
    const id = await engine.subscribe("a");
    await engine.publishMany("a", 2);
    await engine.clock.settle();
    const { address } = await broker.state(topic("a"));
    await engine.rebuild();
    engine.chain.publish([
      { address, count: 3, events: encodeEvents([1, 2, 3].map(() => ({ content, extensions: [] }))) },
    ]);
    await engine.broker.start();
    await engine.clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1, 2, 3, 4, 5]);
  });

  it("moves a subscription to a new url without a gap, but not to another topic", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a"));
    await broker.open(topic("b"));
    sink.receive("http://old/", () => new Promise<AttemptOutcome>(() => {}));
    const id = await engine.subscribe("a", { url: "http://old/" });
    await engine.publishMany("a", 2);
    await clock.settle();
    expect(await engine.subscribe("a", { subscriptionId: id.toUpperCase(), url: "http://new/" })).toBe(id);
    await engine.publishMany("a", 1);
    await clock.settle();
    const accepted = sink.attempts.filter((attempt) => attempt.subscription.url === "http://new/");
    expect(accepted.map((attempt) => attempt.event.sequence)).toEqual([1, 2, 3]);
    await expect(engine.subscribe("b", { subscriptionId: id })).rejects.toEqual(refusal("subscriptionElsewhere"));
  });

  it.each([
    ["keeps its secret at the same url", {}, secretNamed("first")],
    ["loses its secret at another url", { url: "http://new/" }, undefined],
    [
      "keeps its secret at another url if the call repeats it",
      { url: "http://new/", secret: secretNamed("first") },
      secretNamed("first"),
    ],
    ["gets another secret", { secret: secretNamed("second") }, secretNamed("second")],
    [
      "gets another secret at another url",
      { url: "http://new/", secret: secretNamed("second") },
      secretNamed("second"),
    ],
  ])("a subscription %s when the client subscribes again with %j", async (_, params, secret) => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a"));
    const subscriptionId = await engine.subscribe("a", { url: "http://old/", secret: secretNamed("first") });
    await engine.subscribe("a", { url: "http://old/", ...params, subscriptionId });
    await engine.publish("a", "1");
    await clock.settle();
    expect(sink.attempts.map(({ subscription }) => subscription.secret)).toEqual([secret]);
  });

  it("keeps a malformed secret of an older version at the same url, and refuses it elsewhere", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a"));
    const subscriptionId = await engine.subscribe("a", { url: "http://old/" });
    const row = await engine.store.findSubscription(parseSubscriptionId(subscriptionId));
    if (row === undefined || !isCallback(row)) throw new Error("the new subscription is not in the store");
    await engine.store.updateSubscription(row, { delivery: { ...row.delivery, secret: "plain" }, state: "active" });
    await engine.rebuild();
    await engine.broker.start();
    for (const secret of ["plain", undefined]) {
      await engine.subscribe("a", { url: "http://old/", subscriptionId, secret });
    }
    await engine.publish("a", "1");
    await clock.settle();
    expect(sink.attempts.map(({ subscription }) => subscription.secret)).toEqual(["plain"]);
    const other = engine.subscribe("a", { url: "http://old/", subscriptionId, secret: "other" });
    await expect(other).rejects.toEqual(refusal("parameterInvalid"));
    const elsewhere = engine.subscribe("a", { url: "http://new/", subscriptionId, secret: "plain" });
    await expect(elsewhere).rejects.toEqual(refusal("parameterInvalid"));
  });

  it("gives no secret back to a subscription that returns to its earlier url", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a"));
    const subscriptionId = await engine.subscribe("a", { url: "http://old/", secret: secretNamed("first") });
    for (const url of ["http://new/", "http://old/"]) await engine.subscribe("a", { url, subscriptionId });
    await engine.publish("a", "1");
    await clock.settle();
    expect(sink.attempts.map(({ subscription }) => subscription.secret)).toEqual([undefined]);
  });

  it.each(["", " ", "plain", "whsec_", "whsec_!!", "whsec_abc"])("refuses the secret %j", async (secret) => {
    const { broker } = await start();
    await broker.open(topic("a"));
    await expect(engine.subscribe("a", { secret })).rejects.toEqual(refusal("parameterInvalid"));
    expect(await engine.listSubscriptions()).toEqual([]);
  });

  it("refuses subscriptions beyond the limit; a removed one makes room", async () => {
    const { broker } = await start({ limits: { subscriptionsMax: 2 } });
    await broker.open(topic("a"));
    const id = await engine.subscribe("a");
    await engine.subscribe("a");
    await expect(engine.subscribe("a")).rejects.toEqual(refusal("busy"));
    await broker.unSubscribe({ subscriptionId: id });
    await engine.subscribe("a");
  });

  it("delivers nothing after unSubscribe, and refuses a second unSubscribe", async () => {
    const { broker, sink, clock } = await start();
    await broker.open(topic("a"));
    const id = await engine.subscribe("a");
    await engine.publish("a", "1");
    await clock.settle();
    await broker.unSubscribe({ subscriptionId: id });
    await engine.publish("a", "2");
    await clock.settle();
    expect(sink.sequencesOf(id)).toEqual([1]);
    expect(await engine.listSubscriptions()).toEqual([]);
    const again = broker.unSubscribe({ subscriptionId: id });
    await expect(again).rejects.toEqual(refusal("subscriptionNotExist"));
  });

  it("refuses unSubscribe over JSON-RPC without a coordinator", async () => {
    const { running } = await start({ hasCoordinator: false });
    const call = running.calls.unSubscribe({ ...testCaller, protocol: "JSON-RPC" }, { subscriptionId: "x" });
    await expect(call).rejects.toEqual(refusal("noCoordinator"));
  });
});

describe("start", () => {
  it.each([
    ["has a block above the chain's head", 99, /the chain is shorter/],
    ["has another block than the chain", 0, /the chain has 0x/],
  ])("is refused when the index %s", async (_, number, reason) => {
    engine = new TestEngine();
    const block = {
      number,
      hash: `0x${"f".repeat(64)}`,
      opened: [],
      closed: [],
      batches: [],
      skippedSequences: [],
    } as const;
    await engine.store.applyBlocks(defaultGroupId, [block]);
    await expect(engine.broker.start()).rejects.toThrow(reason);
  });

  it("rebuilds the index from the chain with the same identifiers", async () => {
    await start();
    await engine.broker.open(topic("a"));
    const eventId = await engine.publish("a", "1");
    const before = await engine.broker.getEvent({ eventId, groupId: undefined });
    await engine.stop();
    const rebuilt = new TestEngine({ chain: engine.chain });
    await rebuilt.broker.start();
    expect(await rebuilt.broker.getEvent({ eventId, groupId: undefined })).toEqual(before);
    await rebuilt.stop();
  });
});
