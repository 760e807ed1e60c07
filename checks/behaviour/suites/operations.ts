import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { take } from "../../harness/client.ts";
import { type Api, apiNames, apiOver } from "../../harness/apis.ts";
import { type Receiver, startReceiver } from "../../harness/receiver.ts";
import { listTopics } from "../../faults/support/replay.ts";
import type { RunningWorld, World } from "../../harness/world.ts";

/** Largest difference between a chain's clock and ours, in milliseconds: anvil's clock lags by the time that anvil takes to start. */
const chainClockMsMax = 30_000;

/** Every operation of INTERFACE.md on every transport: results have exactly the documented fields. */
export function describeOperations(world: World, running: () => RunningWorld): void {
  describe(`operations on the ${world.name}`, () => {
    // Transports can run concurrently, because each has its own topics.
    describe.each(apiNames)("by %s", { concurrent: world.isSlow }, (apiName) => {
      describeApi(apiName, running);
    });
  });
}

function describeApi(apiName: string, running: () => RunningWorld): void {
  let receiver: Receiver;
  let api: Api;
  beforeAll(async () => {
    receiver = await startReceiver();
    api = apiOver(running().client.http, apiName);
  });
  afterAll(async () => {
    await receiver?.[Symbol.asyncDispose]();
  });
  const named = (name: string): string => `${apiName}/${name}`;
  /** JSON-RPC writes booleans as strings (INTERFACE.md, JSON-RPC, table). */
  const yes = () => ({ isGood: true, value: true, raw: api.kind === "REST" ? true : "true" });

  it("open returns true, even when repeated, and the topic is listed once (INTERFACE.md, States: repeated open)", async () => {
    expect(await api.call("open", { topic: named("twice") })).toEqual(yes());
    expect(await api.call("open", { topic: named("twice") })).toEqual(yes());
    const names = await listTopics(running().client);
    expect(names.filter((name) => name === named("twice"))).toHaveLength(1);
  });

  it("exist distinguishes an opened topic from one that never existed", async () => {
    await api.call("open", { topic: named("there") });
    expect(await api.call("exist", { topic: named("there") })).toEqual(yes());
    const no = { isGood: true, value: false, raw: api.kind === "REST" ? false : "false" };
    expect(await api.call("exist", { topic: named("not there") })).toEqual(no);
  });

  it("close returns true, even when repeated", async () => {
    await api.call("open", { topic: named("closing") });
    expect(await api.call("close", { topic: named("closing") })).toEqual(yes());
    expect(await api.call("close", { topic: named("closing") })).toEqual(yes());
  });

  it("publish returns a SendResult with exactly the documented fields, and getEvent returns the event", async () => {
    await api.call("open", { topic: named("news") });
    const extensions = { "svc-format": "json", "svc-Ünïcode key": "wärt & = ? +" };
    const sent = take("publish", await api.call("publish", { topic: named("news"), content: '{"a":"ä"}', extensions }));
    expect(sent).toEqual({
      topic: named("news"),
      eventId: expect.stringMatching(/^[0-9a-f]{8}-1-\d+$/),
      status: "SUCCESS",
    });
    const event = take("getEvent", await api.call("getEvent", { eventId: sent.eventId }));
    const content = Buffer.from('{"a":"ä"}').toString("base64");
    expect(event).toEqual({ topic: named("news"), content, extensions, eventId: sent.eventId });
  });

  it("publish without extensions gives an event with an empty extensions object", async () => {
    await api.call("open", { topic: named("plain") });
    const sent = take("publish", await api.call("publish", { topic: named("plain"), content: "x" }));
    expect(take("getEvent", await api.call("getEvent", { eventId: sent.eventId }))).toMatchObject({
      extensions: {},
    });
  });

  it("state returns TopicInfo, sequenceNumber and blockNumber; a publish advances both numbers", async () => {
    const before = Date.now();
    await api.call("open", { topic: named("counted") });
    const info = {
      topicName: named("counted"),
      topicAddress: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      senderAddress: expect.stringMatching(/^0x[0-9a-fA-F]{40}$/),
      createdTimestamp: expect.any(Number),
    };
    const first = take("state", await api.call("state", { topic: named("counted") }));
    expect(first).toEqual({ ...info, sequenceNumber: 0, blockNumber: 0 });
    // Block times are whole seconds, and a chain may have its own clock.
    expect(first.createdTimestamp).toBeGreaterThan(before - chainClockMsMax);
    expect(first.createdTimestamp).toBeLessThan(Date.now() + chainClockMsMax);
    const blocks: number[] = [];
    for (const sequence of [1, 2, 3]) {
      const sent = take("publish", await api.call("publish", { topic: named("counted"), content: "x" }));
      const state = take("state", await api.call("state", { topic: named("counted") }));
      expect(state).toEqual({ ...first, sequenceNumber: sequence, blockNumber: expect.any(Number) });
      expect(sent.eventId).toMatch(new RegExp(`^[0-9a-f]{8}-${sequence}-${state.blockNumber}$`));
      blocks.push(state.blockNumber);
    }
    expect(blocks).toEqual([...new Set(blocks)].toSorted((a, b) => a - b));
  });

  it("list returns a TopicPage with exactly the documented fields", async () => {
    await api.call("open", { topic: named("listed") });
    const page = take("list", await api.call("list", { pageIndex: 0, pageSize: 99 }));
    expect(page).toEqual({
      total: expect.any(Number),
      pageIndex: 0,
      pageSize: 99,
      topicInfoList: expect.any(Array),
    });
    expect(page.topicInfoList).toHaveLength(Math.min(page.total, 99));
    for (const info of page.topicInfoList) {
      expect(Object.keys(info).toSorted()).toEqual(["createdTimestamp", "senderAddress", "topicAddress", "topicName"]);
    }
  });

  it("subscribe returns an identifier and starts callbacks; unSubscribe returns true and removes the subscription", async () => {
    await api.call("open", { topic: named("called") });
    const id = take("subscribe", await api.call("subscribe", { topic: named("called"), url: receiver.url }));
    expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    const sent = take("publish", await api.call("publish", { topic: named("called"), content: "for you" }));
    const [event] = await receiver.waitForCount(1);
    const content = Buffer.from("for you").toString("base64");
    expect(event).toEqual({ topic: named("called"), content, extensions: {}, eventId: sent.eventId });
    expect(receiver.attempts[0]).toMatchObject({
      subscriptionId: id,
      kind: api.kind === "REST" ? "RESTful" : "JsonRPC",
    });
    expect(await api.call("unSubscribe", { subscriptionId: id })).toEqual(yes());
    expect(await running().client.findSubscription(id)).toBeUndefined();
    expect(await api.call("unSubscribe", { subscriptionId: id })).toMatchObject({ isGood: false, code: 100504 });
  });

  it("subscribe with an identifier from the caller returns that identifier", async () => {
    await api.call("open", { topic: named("chosen") });
    const subscriptionId = randomUUID();
    const outcome = await api.call("subscribe", { topic: named("chosen"), url: receiver.url, subscriptionId });
    expect(take("subscribe", outcome)).toBe(subscriptionId);
    const again = await api.call("subscribe", { topic: named("chosen"), url: receiver.url, subscriptionId });
    expect(take("subscribe", again)).toBe(subscriptionId);
  });

  it.each(["1", "", " "])(
    "groupId %j means the default group in open, publish, getEvent, state and list",
    async (groupId) => {
      const topic = named("grouped");
      expect(await api.call("open", { topic, groupId })).toEqual(yes());
      expect(await api.call("exist", { topic })).toEqual(yes());
      const sent = take("publish", await api.call("publish", { topic, groupId, content: "x" }));
      expect(await api.call("getEvent", { eventId: sent.eventId, groupId })).toMatchObject({ isGood: true });
      expect(await api.call("state", { topic, groupId })).toMatchObject({ isGood: true });
      expect(await api.call("list", { groupId })).toMatchObject({ isGood: true });
    },
  );
}
