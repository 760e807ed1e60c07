import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BrokerError } from "@stele/wire";
import { anonymous, type Owner } from "../../access/caller.ts";
import { allowAll, type Policy } from "../../access/policy.ts";
import type { OriginSource, TailCall, TailStart } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine, type TestEngineOptions } from "../../testing/test-engine.ts";

class TailPeer extends RecordingPeer {
  readonly rollBacks: number[] = [];
  start: TailStart | undefined;
  origins: OriginSource | undefined;
  wake = (): void => {};

  rolledBack(to: number): void {
    this.rollBacks.push(to);
  }
}

let engine: TestEngine;

async function start(options: TestEngineOptions = {}): Promise<void> {
  engine = await TestEngine.start({ confirmations: 0, ...options });
  await engine.broker.open({ topic: "a", groupId: undefined });
}

beforeEach(() => start());
afterEach(() => engine.stop());

async function tail(call: Partial<TailCall> = {}): Promise<TailPeer & { end(): Promise<void> }> {
  const peer = new TailPeer();
  const opened = engine.broker.tail(
    {
      groupId: undefined,
      filters: ["a"],
      after: undefined,
      lastEventId: undefined,
      onConnected: (session, from, origins) => {
        peer.start = from;
        peer.origins = origins;
        peer.wake = () => session.wake();
      },
      ...call,
    },
    peer,
  );
  const [attachment] = await Promise.all([opened, engine.clock.settle()]);
  return Object.assign(peer, { end: () => attachment.end() });
}

async function codeOf(opened: Promise<unknown>): Promise<number> {
  const error = await opened.catch((thrown: unknown) => thrown);
  return error instanceof BrokerError ? error.code : 0;
}

describe("a tail begins", () => {
  it("after the newest event by default, and gives a place to resume from", async () => {
    await engine.publishMany("a", 2);
    const first = await tail();
    await first.end();
    await engine.publishMany("a", 1);
    const second = await tail({ lastEventId: first.start?.id });
    expect([first.sequences, second.sequences]).toEqual([[], [3]]);
    expect(first.start).toMatchObject({ id: `@${engine.chain.head - 1}`, isRolledBack: false });
  });

  it("before the first event, or after an event", async () => {
    const ids = [await engine.publish("a", "1"), await engine.publish("a", "2"), await engine.publish("a", "3")];
    expect((await tail({ after: "OFFSET_FIRST" })).sequences).toEqual([1, 2, 3]);
    const peer = await tail({ after: ids[1] });
    expect(peer.sequences).toEqual([3]);
    expect(peer.start?.id).toBe(ids[1]);
  });

  it("after the earlier of two events that have the same eventId, since their topics share its digest", async () => {
    const topics = ["topic/50622", "topic/83634"] as const;
    for (const topic of topics) await engine.broker.open({ topic, groupId: undefined });
    const publishes = ["topic/83634", "a", "topic/50622"].map((topic) => engine.publish(topic, "x"));
    const [first, , last] = await Promise.all(publishes);
    expect(last).toBe(first);
    const { deliveries } = await tail({ filters: ["#"], lastEventId: first });
    expect(deliveries.map(({ event }) => event.topic)).toEqual(["a", "topic/50622"]);
  });

  it("at a time", async () => {
    await engine.publish("a", "1");
    await engine.clock.advance(10_000);
    const time = engine.clock.now();
    await engine.clock.advance(10_000);
    await engine.publishMany("a", 2);
    expect((await tail({ after: String(time) })).sequences).toEqual([2, 3]);
    expect((await tail({ after: new Date(time).toISOString() })).sequences).toEqual([2, 3]);
    expect((await tail({ after: "1970-01-01T00:00:00Z" })).sequences).toEqual([1, 2, 3]);
    expect((await tail({ after: "2999-01-01T00:00:00Z" })).sequences).toEqual([]);
  });

  it("after lastEventId, whatever `after` says", async () => {
    const [first] = [await engine.publish("a", "1"), await engine.publish("a", "2")];
    expect((await tail({ after: "OFFSET_LAST", lastEventId: first })).sequences).toEqual([2]);
    expect((await tail({ after: "OFFSET_LAST", lastEventId: "OFFSET_FIRST" })).sequences).toEqual([1, 2]);
  });

  it("only if its start, its filter and its group are valid", async () => {
    const [digest, , block] = (await engine.publish("a", "1")).split("-");
    expect(await codeOf(tail({ after: "nonsense" }))).toBe(100302);
    await expect(tail({ after: "yesterday" })).rejects.toThrow(/"yesterday" is not OFFSET_FIRST, .* a time such as /);
    expect(await codeOf(tail({ lastEventId: "nonsense" }))).toBe(100302);
    expect(await codeOf(tail({ after: `${digest}-9-${block}` }))).toBe(100303);
    expect(await codeOf(tail({ after: `${digest}-9-99999` }))).toBe(100304);
    expect(await codeOf(tail({ after: "2026-99-99T00:00:00Z" }))).toBe(200001);
    expect(await codeOf(tail({ after: "2026-02-31T00:00:00Z" }))).toBe(200001);
    expect(await codeOf(tail({ filters: ["a/#/b"] }))).toBe(100109);
    expect(await codeOf(tail({ groupId: "other" }))).toBe(200211);
  });
});

it("a tail gives nothing to a peer without room, and everything in order once it has room", async () => {
  const peer = await tail();
  peer.hasRoom = false;
  await engine.publishMany("a", 5);
  expect(peer.sequences).toEqual([]);
  peer.hasRoom = true;
  peer.wake();
  await engine.clock.settle();
  expect(peer.sequences).toEqual([1, 2, 3, 4, 5]);
});

it("a tail is in no listing, and writes nothing to the store", async () => {
  const peer = await tail();
  expect(await engine.listSubscriptions()).toEqual([]);
  expect(await engine.store.sessions.listSessions({ after: undefined, limit: 10 })).toEqual([]);
  await peer.end();
  await engine.publishMany("a", 1);
  expect(peer.sequences).toEqual([]);
});

describe("a reorganisation", () => {
  it("reaches a tail before the events of the new branch", async () => {
    const peer = await tail();
    await engine.publishMany("a", 3);
    const before = engine.chain.head - 2;
    engine.chain.cutBack(before);
    engine.chain.sealEmpty();
    await engine.publish("a", "another");
    await engine.clock.settle();
    expect(peer.rollBacks.map((to) => Math.floor(to / 2 ** 20))).toEqual([before]);
    expect(peer.sequences).toEqual([1, 2, 3, 2]);
  });

  it("leaves no gap for a client that got no event and resumes after a block that the reorg replaced", async () => {
    await engine.publish("a", "1");
    engine.chain.sealEmpty();
    await engine.clock.settle();
    const idle = await tail();
    await idle.end();
    engine.chain.cutBack(engine.chain.head - 1);
    await engine.publish("a", "another");
    engine.chain.sealEmpty();
    await engine.clock.settle();
    const back = await tail({ lastEventId: idle.start?.id });
    expect(back.start?.isRolledBack).toBe(true);
    expect(back.sequences).toEqual([1, 2]);
    await back.end();
    const again = await tail({ lastEventId: (await tail()).start?.id });
    expect(again.start?.isRolledBack).toBe(false);
    await engine.publishMany("a", 1);
    expect(again.sequences).toEqual([3]);
    expect((await tail({ after: idle.start?.id })).start?.isRolledBack).toBe(false);
    expect((await tail({ after: "@1.7" })).start?.isRolledBack).toBe(true);
  });

  it("leaves no gap for a client that resumes after a removed event", async () => {
    await engine.publish("a", "1");
    const gone = await engine.publish("a", "2");
    await engine.clock.settle();
    engine.chain.cutBack(engine.chain.head - 1);
    await engine.clock.settle();
    await engine.publish("a", "another");
    engine.chain.sealEmpty();
    const other = await engine.publish("a", "3");
    await engine.clock.settle();
    expect(other).not.toBe(gone);
    const peer = await tail({ lastEventId: gone.replace(/-2-/, "-7-") });
    expect(peer.start?.isRolledBack).toBe(true);
    expect(peer.sequences).toEqual([1, 2, 3]);
    expect((await tail({ lastEventId: "@99999" })).start?.isRolledBack).toBe(true);
  });
});

it("a tail knows the contract of a topic and the time of a block until a reorg replaces the block", async () => {
  const { signal } = new AbortController();
  const peer = await tail();
  await engine.publish("a", "1");
  const [event] = peer.deliveries.map((delivery) => delivery.event);
  if (event === undefined || peer.origins === undefined) throw new Error("nothing came");
  expect(peer.origins.find(event)).toBeUndefined();
  const origin = await peer.origins.load(event, signal);
  const { address } = await engine.broker.state({ topic: "a", groupId: undefined });
  expect(origin).toEqual({ source: `eip155:0:${address}`, time: engine.chain.find(event.blockNumber)?.timestamp });
  expect(peer.origins.find(event)).toEqual(origin);
  engine.chain.cutBack(engine.chain.head - 1);
  await engine.clock.settle();
  expect(peer.origins.find(event)).toBeUndefined();
});

describe("the rights of a tail", () => {
  let allowed: ReadonlySet<string>;
  let isKnown: boolean;
  const policy: Policy = {
    ...allowAll,
    authenticate: () => anonymous,
    findFault: () => (isKnown ? undefined : "it was withdrawn"),
    allows: (_caller, action, { topic = "" }) => action !== "subscribe" || allowed.has(topic),
    mayReceive: (_owner: Owner, { topic = "" }) => allowed.has(topic),
  };

  beforeEach(async () => {
    [allowed, isKnown] = [new Set(["a", "#"]), true];
    await engine.stop();
    await start({ policy });
  });

  it("are checked for each filter before the tail begins", async () => {
    expect(await codeOf(tail({ filters: ["a", "b"] }))).toBe(100702);
    isKnown = false;
    expect(await codeOf(tail())).toBe(100701);
  });

  it("are checked for the topic of each event", async () => {
    const peer = await tail({ filters: ["#"] });
    await engine.broker.open({ topic: "b", groupId: undefined });
    await engine.publish("b", "1");
    await engine.publish("a", "1");
    expect(peer.deliveries.map(({ event }) => event.topic)).toEqual(["a"]);
  });
});
