import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ReceivedEvent } from "@stele/client";
import { expect, test } from "vitest";
import { EventBuffer } from "./event-buffer.ts";

function toEvent(sequence: number, { block = sequence, content = "eA==", extensions = {} } = {}): ReceivedEvent {
  return new ReceivedEvent({ topic: "a", content, extensions, eventId: `2cf24dba-${sequence}-${block}` });
}

function idsOf(buffer: EventBuffer): readonly (string | undefined)[] {
  return Array.from({ length: buffer.length }, (_, index) => buffer.at(index)?.event.eventId);
}

test("EventBuffer keeps the newest events, and their numbers", () => {
  const buffer = new EventBuffer({ eventsMax: 3, charactersMax: 1000 });
  for (let sequence = 1; sequence <= 10; sequence += 1) buffer.add(toEvent(sequence), sequence);
  expect(idsOf(buffer)).toEqual(["2cf24dba-8-8", "2cf24dba-9-9", "2cf24dba-10-10"]);
  expect(buffer.at(0)).toMatchObject({ number: 7, receivedAt: 8 });
  expect([buffer.at(-1), buffer.at(3)]).toEqual([undefined, undefined]);
  expect(buffer.find("2cf24dba-9-9")?.number).toBe(8);
  expect(buffer.find("2cf24dba-7-7")).toBeUndefined();
});

test("EventBuffer limits the total length of the contents, but always keeps the newest event", () => {
  const buffer = new EventBuffer({ eventsMax: 100, charactersMax: 10 });
  for (const sequence of [1, 2, 3]) buffer.add(toEvent(sequence), 0);
  expect(idsOf(buffer)).toEqual(["2cf24dba-2-2", "2cf24dba-3-3"]);
  buffer.add(toEvent(4, { content: "x".repeat(40) }), 0);
  expect(idsOf(buffer)).toEqual(["2cf24dba-4-4"]);
});

test("EventBuffer limits the total length of the extensions too, which may be 256 times as long as the default", () => {
  const buffer = new EventBuffer({ eventsMax: 100, charactersMax: 30 });
  for (const sequence of [1, 2, 3]) buffer.add(toEvent(sequence, { extensions: { "svc-a": "12345" } }), 0);
  expect(idsOf(buffer)).toEqual(["2cf24dba-2-2", "2cf24dba-3-3"]);
  buffer.dropAfter(2);
  buffer.add(toEvent(3, { extensions: { "svc-a": "12345" } }), 0);
  expect(buffer.length).toBe(2);
});

test("EventBuffer keeps no reference to most of the events that it dropped to stay below charactersMax", async () => {
  const buffer = new EventBuffer({ eventsMax: 1_000, charactersMax: 1_000 });
  const add = (sequence: number): WeakRef<ReceivedEvent> => {
    const event = toEvent(sequence, { content: "x".repeat(100) });
    buffer.add(event, 0);
    return new WeakRef(event);
  };
  const added = Array.from({ length: 100 }, (_, index) => add(index + 1));
  await turn(); // A new WeakRef keeps its target until the end of the turn.
  collectGarbage();
  expect(buffer.length).toBe(10);
  expect(added.filter((event) => event.deref() !== undefined).length).toBeLessThanOrEqual(15);
});

test("dropAfter removes the events of later blocks from the buffer and from the total length", () => {
  const buffer = new EventBuffer({ eventsMax: 4, charactersMax: 12 });
  for (const block of [5, 6, 7]) buffer.add(toEvent(block), 0);
  buffer.dropAfter(5);
  buffer.add(toEvent(6, { block: 8 }), 0);
  buffer.add(toEvent(7, { block: 9 }), 0);
  expect(idsOf(buffer)).toEqual(["2cf24dba-5-5", "2cf24dba-6-8", "2cf24dba-7-9"]);
});

test("EventBuffer is empty after clear, and continues to number events", () => {
  const buffer = new EventBuffer({ eventsMax: 4, charactersMax: 12 });
  buffer.add(toEvent(1), 0);
  buffer.clear();
  buffer.add(toEvent(2), 0);
  expect([buffer.length, buffer.at(0)?.number]).toEqual([1, 1]);
});

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect !== "function") throw new Error("V8's garbage collector cannot be called");
  collect();
}
