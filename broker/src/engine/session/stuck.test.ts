import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { Store } from "../../ports/store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { Attachment } from "../broker.ts";
import { publish } from "../testing/publish.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { withCalls } from "../../lib/with-calls.ts";

let engine: TestEngine;
/** Reads of the index by sessions: how many are in progress, the most at once, and all. */
let reads = { now: 0, most: 0, all: 0 };
let fails = false;
let delayMs = 0;
/** Whether only reads of one event take `delayMs`. */
let delaysOne = false;

async function read<Result>(call: () => Promise<Result>, isOfOne = false): Promise<Result> {
  reads.now += 1;
  reads.all += 1;
  reads.most = Math.max(reads.most, reads.now);
  if (delayMs > 0 && (isOfOne || !delaysOne))
    await new Promise<void>((resolve) => engine.clock.after(delayMs, () => resolve()));
  reads.now -= 1;
  if (fails) throw new Error("the place is damaged");
  return call();
}

beforeEach(async () => {
  fails = false;
  delayMs = 0;
  delaysOne = false;
  const memory = createMemoryStore();
  const listRetained: Store["listRetained"] = (...call) => read(() => memory.listRetained(...call));
  const readBatches: Store["readBatches"] = (...call) =>
    read(() => memory.readBatches(...call), call[1].batchesMax === 1);
  engine = await TestEngine.start({ store: withCalls(memory, { listRetained, readBatches }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
});
afterEach(() => engine.stop());

async function attach(peer: RecordingPeer, key = "c"): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key, isClean: false, will: undefined } as const;
  const attached = engine.broker.attach({ ...request, expiryMs: 60_000, windowMax: 100, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

async function subscribe(attachment: Attachment, text: string): Promise<void> {
  const defaults = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await attachment.subscribe([{ ...defaults, filter: parseTopicFilter(text), retained: "always" }]);
  await engine.clock.settle();
}

async function retain(topic: string, text: string): Promise<void> {
  const content = new TextEncoder().encode(text);
  await publish(engine.broker, { topic, groupId: undefined, content, extensions: [["svc-retain", "true"]] });
}

const health = () => engine.running.groupHealth()[0];

describe("a session whose retained events cannot be read", () => {
  it("is named by health until the events can be read, and then gets them and newer events", async () => {
    await retain("a", "1");
    const peer = new RecordingPeer();
    const attachment = await attach(peer);
    fails = true;
    await subscribe(attachment, "a");
    await engine.publish("a", "2");
    await engine.clock.advance(60_000);
    expect(health()).toMatchObject({ ready: false });
    expect(health()?.reason).toContain(`session ${attachment.session.id} (retained events) is not delivered`);
    expect(health()?.reason).toContain("the place is damaged");
    expect(peer.sequences).toEqual([]);
    fails = false;
    await engine.clock.advance(11_000);
    expect(peer.sequences).toEqual([1, 2]);
    expect(health()).toMatchObject({ ready: true });
  });

  it("is no longer named by health once it has lost its connection", async () => {
    await retain("a", "1");
    const attachment = await attach(new RecordingPeer());
    fails = true;
    await subscribe(attachment, "a");
    expect(health()?.ready).toBe(false);
    attachment.detach({ expiryMs: 0, isRegular: true });
    await engine.clock.advance(20_000);
    expect(health()?.ready).toBe(true);
  });
});

it("a tail is stuck while its events cannot be read, and gets them once they can", async () => {
  await engine.publish("a", "1");
  const peer = new RecordingPeer();
  const tails: { readonly isStuck: boolean }[] = [];
  const call = { groupId: undefined, filters: ["a"], after: "OFFSET_FIRST", lastEventId: undefined };
  fails = true;
  const opened = engine.broker.tail({ ...call, onConnected: (session) => tails.push(session) }, peer);
  await Promise.all([opened, engine.clock.settle()]);
  expect([peer.sequences, tails[0]?.isStuck]).toEqual([[], true]);
  fails = false;
  await engine.clock.advance(11_000);
  expect([peer.sequences, tails[0]?.isStuck]).toEqual([[1], false]);
});

it("a share continues after a member failed, and health names the share meanwhile", async () => {
  let isBroken = false;
  class BrokenPeer extends RecordingPeer {
    constructor() {
      super();
      Object.defineProperty(this, "hasRoom", {
        get: () => {
          if (isBroken) throw new Error("broken");
          return true;
        },
      });
    }
  }
  const peer = new BrokenPeer();
  await subscribe(await attach(peer), "$share/s/a");
  isBroken = true;
  await engine.publish("a", "1");
  await engine.clock.advance(100);
  expect(health()?.reason).toContain("share $share/s/a (events) is not delivered: broken");
  isBroken = false;
  await engine.publish("a", "2");
  await engine.clock.advance(11_000);
  expect(peer.sequences).toEqual([1, 2]);
  expect(health()?.ready).toBe(true);
});

it("50 sessions that ask for the same 30 retained events share at most 80 reads, at most four at a time", async () => {
  const topics = Array.from({ length: 30 }, (_, number) => `t${number}`);
  for (const topic of topics) {
    await engine.broker.open({ topic, groupId: undefined });
    await retain(topic, topic);
  }
  const peers = Array.from({ length: 50 }, () => new RecordingPeer());
  const attachments = [];
  for (const [index, peer] of peers.entries()) attachments.push(await attach(peer, String(index)));
  reads = { now: 0, most: 0, all: 0 };
  delayMs = 10;
  const subscribed = attachments.map((attachment) => subscribe(attachment, "#"));
  await engine.clock.advance(60_000);
  await Promise.all(subscribed);
  for (const peer of peers) expect(peer.deliveries).toHaveLength(30);
  expect(reads.most).toBeLessThanOrEqual(4);
  expect(reads.all).toBeLessThanOrEqual(50 + 30);
});

it("repeats an unacknowledged retained event before the later events of its topic, however long the read of the retained event takes", async () => {
  await retain("a", "1");
  const attachment = await attach(new RecordingPeer());
  await subscribe(attachment, "a");
  await retain("a", "2");
  await retain("a", "3");
  attachment.detach({ expiryMs: 60_000, isRegular: true });
  await engine.clock.advance(1_000);
  await engine.rebuild(); // So that no event is in memory.
  await engine.broker.start();
  delaysOne = true;
  delayMs = 50;
  const peer = new RecordingPeer();
  await attach(peer);
  await engine.clock.advance(1_000);
  expect(peer.sequences).toEqual([1, 2, 3]);
});
