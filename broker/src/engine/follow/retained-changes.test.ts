import { encodeEvents } from "@stele/wire";
import { expect, it } from "vitest";
import type { Extensions } from "../../domain/event.ts";
import { alpha, batchOf, beta, blockOf } from "../../ports/store-examples.contract.ts";
import { toPosition } from "../../domain/position.ts";
import { RetainedChanges } from "./retained-changes.ts";

const marked: Extensions = [["svc-retain", "true"]];
const changes = new RetainedChanges("svc-");

function batch(topic: typeof alpha, index: number, events: readonly (readonly [content: string, Extensions])[]) {
  const encoded = encodeEvents(events.map(([content, extensions]) => ({ content: Buffer.from(content), extensions })));
  return batchOf(topic, { block: 7, index, sequence: index + 1, count: events.length, events: encoded });
}

function retainedIn(...batches: readonly ReturnType<typeof batch>[]) {
  return changes.addTo(blockOf(7, { batches })).retained;
}

it("returns the last marked event of each topic as retained", () => {
  const first = batch(alpha, 0, [
    ["1", marked],
    ["2", marked],
    ["3", []],
  ]);
  const second = batch(beta, 3, [["1", [["svc-qos", "0"], ...marked, ["svc-a", "b"]]]]);
  const third = batch(alpha, 4, [["4", marked]]);
  expect(retainedIn(first, second)).toEqual([
    { name: alpha, retained: { sequence: 2, position: toPosition(7, 1) } },
    { name: beta, retained: { sequence: 4, position: toPosition(7, 3) } },
  ]);
  expect(retainedIn(first, third)).toEqual([{ name: alpha, retained: { sequence: 5, position: toPosition(7, 4) } }]);
});

it("removes the retained event of a topic if its last marked event is empty", () => {
  expect(
    retainedIn(
      batch(alpha, 0, [
        ["1", marked],
        ["", marked],
        ["3", []],
      ]),
    ),
  ).toEqual([{ name: alpha }]);
  expect(
    retainedIn(
      batch(alpha, 0, [
        ["", marked],
        ["2", marked],
      ]),
    ),
  ).toMatchObject([{ retained: { sequence: 2 } }]);
});

it.each<[string, string, Extensions]>([
  ["no extension", "1", []],
  ["an empty content without the mark", "", []],
  ["another value of the mark", "1", [["svc-retain", "false"]]],
  ["another key with the same end", "1", [["svc-svc-retain", "true"]]],
  ["a second value of the mark", "1", [["svc-retain", "no"], ...marked]],
  ["a content that looks like the mark", "svc-retain\u0084true", []],
  ["the bytes of the mark as a content", Buffer.from("8a7376632d72657461696e8474727565", "hex").toString("latin1"), []],
])("adds nothing to a block with %s", (_, content, extensions) => {
  expect(retainedIn(batch(alpha, 0, [[content, extensions]]))).toBeUndefined();
});

it("finds the mark with another prefix of extensions", () => {
  const other = new RetainedChanges("x".repeat(60));
  const events = batch(alpha, 0, [["1", [[`${"x".repeat(60)}retain`, "true"]]]]);
  expect(other.addTo(blockOf(7, { batches: [events] })).retained).toHaveLength(1);
});
