import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { Attachment } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { Share } from "./share.ts";

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  await engine.broker.open({ topic: "a", groupId: undefined });
});
afterEach(() => engine.stop());

/** A client that does not read, and counts how often somebody asks whether it has room. */
class FullPeer extends RecordingPeer {
  asked = 0;
  isFull = true;

  constructor() {
    super();
    const get = (): boolean => {
      this.asked += 1;
      return !this.isFull;
    };
    Object.defineProperty(this, "hasRoom", { get }); // In place of the field.
  }
}

async function join(peer: RecordingPeer, key: string, { qos = 1, filters = ["$share/s/a"] } = {}): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key, isClean: true, windowMax: 1, will: undefined } as const;
  const attached = engine.broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  const options = { qos: qos as 0 | 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined };
  await attachment.subscribe(filters.map((text) => ({ ...options, filter: parseTopicFilter(text) })));
  await engine.clock.settle();
  return attachment;
}

const events = 50;
const members = 20;

it("does not ask members without room again for each event that another member acknowledges", async () => {
  const full = Array.from({ length: members }, () => new FullPeer());
  for (const [index, peer] of full.entries()) await join(peer, `full ${index}`);
  const reader = new RecordingPeer();
  const { session } = await join(reader, "reader");
  for (const peer of full) peer.asked = 0;
  await engine.publishMany("a", events);
  for (let sequence = 1; sequence <= events; sequence += 1) {
    session.acknowledge(reader.ticketOf(sequence));
    await engine.clock.settle();
  }
  expect(reader.sequences).toEqual(Array.from({ length: events }, (_, index) => index + 1));
  expect(full.reduce((sum, { asked }) => sum + asked, 0)).toBeLessThan(3 * members);
});

it("gives a waiting event to a full member once it has room and wakes", async () => {
  const slow = new FullPeer();
  const attachment = await join(slow, "slow");
  await engine.publishMany("a", 1);
  await engine.clock.settle();
  expect(slow.sequences).toEqual([]);
  slow.isFull = false;
  attachment.session.wake();
  await engine.clock.settle();
  expect(slow.sequences).toEqual([1]);
});

it("gives a client of two shares the events of both, although its window has room for one event", async () => {
  const peer = new RecordingPeer();
  await join(peer, "both", { qos: 0, filters: ["$share/s/a", "$share/t/a"] });
  await engine.publishMany("a", 3);
  await engine.clock.settle();
  expect(peer.sequences.toSorted((left, right) => left - right)).toEqual([1, 1, 2, 2, 3, 3]);
});

function watchWakes() {
  const woken = vi.spyOn(Share.prototype, "wakeFor");
  onTestFinished(() => woken.mockRestore());
  return woken;
}

it("after an acknowledgement, wakes each waiting share once, although only one of them gets the room", async () => {
  const peer = new RecordingPeer();
  const filters = Array.from({ length: 20 }, (_, index) => `$share/s${index}/a`);
  const { session } = await join(peer, "many", { filters });
  await engine.publishMany("a", 1);
  await engine.clock.settle();
  const woken = watchWakes();
  session.acknowledge(peer.ticketOf(1));
  await engine.clock.settle();
  expect(peer.sequences).toEqual([1, 1]);
  expect(woken).toHaveBeenCalledTimes(filters.length - 1);
});

it("wakes no share for an acknowledgement by a client of many shares that have no event for it", async () => {
  const peer = new RecordingPeer();
  const filters = ["a", ...Array.from({ length: 100 }, (_, index) => `$share/s${index}/b`)];
  const { session } = await join(peer, "many", { filters });
  await engine.publishMany("a", 2);
  await engine.clock.settle();
  const woken = watchWakes();
  session.acknowledge(peer.ticketOf(1));
  await engine.clock.settle();
  expect(peer.sequences).toEqual([1, 2]);
  expect(woken).not.toHaveBeenCalled();
});
