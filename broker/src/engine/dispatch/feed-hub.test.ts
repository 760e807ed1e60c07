import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { type Event, type EventBatch, toPassingEvent } from "../../domain/event.ts";
import { defaultGroupId, parseGroupId } from "../../domain/group-id.ts";
import { toPosition } from "../../domain/position.ts";
import { parseTopicFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { FeedHub } from "./feed-hub.ts";
import type { Reader } from "./reader.ts";

class RecordingReader implements Reader {
  readonly offered: EventBatch[] = [];
  readonly passed: (readonly TopicFilter[])[] = [];
  hasFallenBehind = false;

  offer(batch: EventBatch): void {
    this.offered.push(batch);
  }
  pass(_event: Event, filters: readonly TopicFilter[]): void {
    this.passed.push(filters);
  }
  fallBehind(): void {
    this.hasFallenBehind = true;
  }
  wake(): void {}
}

const levelsCount = 12;
const parent = Array.from({ length: levelsCount }, () => "a").join("/");

const batches = Array.from({ length: 200 }, (_, index) => batchOf(`${parent}/${index}`, index));

function batchOf(topic: string, index: number): EventBatch {
  const place = { firstSequence: 1, firstPosition: toPosition(1, index), blockNumber: 1, logIndex: index };
  const origin = { transactionHash: "0x", publisher: "0x" } as const;
  return { ...place, ...origin, topic: parseTopicName(topic), count: 1, events: new Uint8Array() };
}

/** Patterns whose levels are `a` or `+`, so that they match the first levels of every topic; `end` matches no topic. */
function* nearlyMatching(end: string): Iterable<string> {
  for (let bits = 0; bits < 2 ** levelsCount; bits += 1) {
    yield [...Array.from({ length: levelsCount }, (_, level) => ((bits >> level) & 1 ? "+" : "a")), end].join("/");
  }
}

/** All patterns of up to `depth` levels `a` or `+`, each unchanged, with `#` after it, and with a further level `z`. */
function* everyPattern(depth: number): Iterable<string> {
  for (let length = 1; length <= depth; length += 1) {
    for (let bits = 0; bits < 2 ** length; bits += 1) {
      const levels = Array.from({ length }, (_, level) => ((bits >> level) & 1 ? "+" : "a"));
      for (const end of [[], ["#"], ["z"]]) yield [...levels, ...end].join("/");
    }
  }
}

/** A hub with `reader`, which has the filter `#`, and another reader with the filters `others`. */
function hubOf(reader: Reader, others: Iterable<string>): FeedHub {
  const hub = new FeedHub({ slices: new TimeSlices(new VirtualClock()) });
  const other = new RecordingReader();
  for (const one of [reader, other]) hub.attach(defaultGroupId, one);
  hub.addFilter(defaultGroupId, parseTopicFilter("#"), reader);
  for (const filter of others) hub.addFilter(defaultGroupId, parseTopicFilter(filter), other);
  return hub;
}

function offerTo(reader: Reader, others: Iterable<string>, offered: readonly EventBatch[] = batches): void {
  hubOf(reader, others).offer(defaultGroupId, offered);
}

function passingEvent(topic: string, content = new Uint8Array([1])): Event {
  return toPassingEvent(parseTopicName(topic), { content, extensions: [] });
}

function pass(hub: FeedHub, topic: string, content?: Uint8Array<ArrayBuffer>): Promise<void> | undefined {
  return hub.pass(defaultGroupId, passingEvent(topic, content));
}

it("offers all batches when other readers have few patterns", () => {
  const reader = new RecordingReader();
  offerTo(reader, ["b/#", "+/+/z", `${parent}/+`]);
  expect(reader).toMatchObject({ offered: batches, hasFallenBehind: false });
});

it("makes readers read the remaining batches from the store when thousands of patterns nearly match", () => {
  const reader = new RecordingReader();
  offerTo(reader, nearlyMatching("z"));
  expect(reader.hasFallenBehind).toBe(true);
  expect(reader.offered.length).toBeGreaterThan(0);
  expect(reader.offered.length).toBeLessThan(20);
  expect(reader.offered).toEqual(batches.slice(0, reader.offered.length));
});

it("makes readers fall behind even after one batch when thousands of long patterns nearly match the batch's topic", () => {
  const tail = "a/".repeat(100);
  const reader = new RecordingReader();
  const batch = batchOf(`${parent}/${tail}1`, 0);
  offerTo(reader, nearlyMatching(`${tail}z`), [batch]);
  expect(reader).toMatchObject({ offered: [batch], hasFallenBehind: true });
});

it("makes readers read their remaining batches from the store when thousands of readers get each batch", () => {
  const hub = new FeedHub({ slices: new TimeSlices(new VirtualClock()) });
  const readers = Array.from({ length: 10_000 }, () => new RecordingReader());
  for (const reader of readers) {
    hub.attach(defaultGroupId, reader);
    hub.addFilter(defaultGroupId, parseTopicFilter("#"), reader);
  }
  const [idle, late] = [new RecordingReader(), new RecordingReader()];
  for (const [filter, reader] of [["b", idle] as const, [`${parent}/150`, late] as const]) {
    hub.attach(defaultGroupId, reader);
    hub.addFilter(defaultGroupId, parseTopicFilter(filter), reader);
  }
  hub.offer(defaultGroupId, batches);
  expect(idle).toMatchObject({ offered: [], hasFallenBehind: false });
  expect(late).toMatchObject({ offered: [], hasFallenBehind: true });
  const offered = readers.map((reader) => reader.offered.length);
  expect([Math.min(...offered), Math.max(...offered)]).toEqual([10, 10]);
  expect(readers.every(({ hasFallenBehind }) => hasFallenBehind)).toBe(true);
});

it("offers one batch to every reader, however many they are", () => {
  const reader = new RecordingReader();
  const hub = hubOf(reader, []);
  for (let count = 0; count < 20_000; count += 1) {
    const other = new RecordingReader();
    hub.attach(defaultGroupId, other);
    hub.addFilter(defaultGroupId, parseTopicFilter("#"), other);
  }
  hub.offer(defaultGroupId, batches.slice(0, 1));
  expect(reader).toMatchObject({ offered: batches.slice(0, 1), hasFallenBehind: false });
});

it("passes an event once to a reader, with all its matching filters", () => {
  const reader = new RecordingReader();
  const hub = hubOf(reader, ["a/+", "b"]);
  for (const filter of ["a/+", "a/b", "+/c"]) hub.addFilter(defaultGroupId, parseTopicFilter(filter), reader);
  void pass(hub, "a/b");
  expect(reader.passed).toHaveLength(1);
  expect(reader.passed[0]?.toSorted()).toEqual(["#", "a/+", "a/b"]);
});

it("refuses to pass an event when thousands of patterns nearly match its topic", () => {
  const reader = new RecordingReader();
  const hub = hubOf(reader, nearlyMatching("z"));
  expect(() => pass(hub, `${parent}/1`)).toThrow("too many filters match the first levels of the topic");
  expect(reader.passed).toEqual([]);
});

it("passes an event of a topic with ten levels even if every possible pattern exists", () => {
  const reader = new RecordingReader();
  void pass(hubOf(reader, everyPattern(10)), Array.from({ length: 10 }, () => "a").join("/"));
  expect(reader.passed).toEqual([["#"]]);
});

/** A hub with readers of `#` that each take 0.1 ms, and the event loop on which it passes events. */
class SlicedHub {
  /** Each reader with the events that it got. */
  readonly passed: (readonly [Reader, Event])[] = [];
  readonly hub: FeedHub;
  readonly #turns: (() => void)[] = [];

  constructor(readers: number) {
    const soon = (action: () => void): void => void this.#turns.push(action);
    this.hub = new FeedHub({ slices: new TimeSlices({ monotonic: () => this.passed.length / 10, soon }) });
    for (let count = 0; count < readers; count += 1) this.add();
  }

  add(): Reader {
    const reader = new RecordingReader();
    reader.pass = (event) => void this.passed.push([reader, event]);
    this.hub.attach(defaultGroupId, reader);
    this.hub.addFilter(defaultGroupId, parseTopicFilter("#"), reader);
    return reader;
  }

  /** Runs turns until `passed` resolves. Returns how many readers got an event in the longest of them. */
  async run(passed: Promise<unknown> | undefined): Promise<number> {
    const state = { isOver: false };
    void passed?.then(() => (state.isOver = true));
    let [largest, before] = [0, 0];
    while (!state.isOver) {
      largest = Math.max(largest, this.passed.length - before);
      before = this.passed.length;
      await setImmediate(); // Runs all microtasks.
      for (const action of this.#turns.splice(0)) {
        action();
        await setImmediate();
      }
    }
    return largest;
  }
}

it("passes an event to thousands of readers in slices, while its publisher waits", async () => {
  const sliced = new SlicedHub(1_000);
  expect(await sliced.run(pass(sliced.hub, "a"))).toBeLessThanOrEqual(60);
  expect(new Set(sliced.passed.map(([reader]) => reader)).size).toBe(1_000);
});

it("passes the events of several publishers to all readers in one order, and looks for the readers of one event at a time", async () => {
  const sliced = new SlicedHub(100);
  const passing = ["a", "b", "c"].map(async (topic) => pass(sliced.hub, topic));
  const late = sliced.add(); // Before the second event has its turn.
  expect(await sliced.run(Promise.all(passing))).toBeLessThanOrEqual(60);
  const received = new Map<Reader, string>();
  for (const [reader, { topic }] of sliced.passed) received.set(reader, (received.get(reader) ?? "") + topic);
  expect(received.get(late)).toBe("bc");
  received.delete(late);
  expect([received.size, new Set(received.values())]).toEqual([100, new Set(["abc"])]);
});

it("refuses an event while 64 MiB of events wait for their readers", async () => {
  const sliced = new SlicedHub(60);
  const first = pass(sliced.hub, "a");
  const content = new Uint8Array(2 ** 20);
  for (let count = 0; count < 63; count += 1) void pass(sliced.hub, "b", content);
  expect(() => pass(sliced.hub, "b", content)).toThrow("too many publishes wait for their subscribers");
  const last = pass(sliced.hub, "b", content.subarray(2 ** 17));
  await sliced.run(first);
  await sliced.run(last);
  await sliced.run(pass(sliced.hub, "b", content));
});

it("lets no event wait for those of another group", async () => {
  const sliced = new SlicedHub(1_000);
  const first = pass(sliced.hub, "a");
  await sliced.run(sliced.hub.pass(parseGroupId("2"), passingEvent("a")));
  expect(sliced.passed.length).toBeLessThan(1_000);
  await sliced.run(first);
});
