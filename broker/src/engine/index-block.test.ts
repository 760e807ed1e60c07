import { expect, it } from "vitest";
import { eventsPerBlockMax, toPosition } from "../domain/position.ts";
import type { Address } from "../domain/topic.ts";
import { parseTopicName } from "../domain/topic-name.ts";
import type { LedgerBlock, LedgerEntry } from "../ports/ledger.ts";
import { indexBlocks } from "./index-block.ts";

const address = (digit: string): Address => `0x${digit.repeat(40)}`;
const place = { transactionHash: `0x${"e".repeat(64)}`, logIndex: 0 } as const;
const known = new Map([[address("a"), parseTopicName("a")]]);

function block(number: number, entries: readonly LedgerEntry[]): LedgerBlock {
  return {
    number,
    hash: `0x${"1".repeat(64)}`,
    parentHash: `0x${"0".repeat(64)}`,
    timestamp: 1_700_000_000_000,
    entries,
  };
}

function committed(digit: string, firstSequence: number, count: number): LedgerEntry {
  return {
    ...place,
    kind: "events-committed",
    address: address(digit),
    publisher: address("f"),
    firstSequence,
    count,
    events: new Uint8Array(),
  };
}

it("numbers the positions of a block's events from 0, and again from 0 in the next block", () => {
  const results = indexBlocks(
    [block(7, [committed("a", 1, 3), committed("a", 4, 2)]), block(8, [committed("a", 6, 1)])],
    known,
  );
  const positions = results.map((result) => result.batches.map((batch) => batch.firstPosition));
  expect(positions).toEqual([[toPosition(7, 0), toPosition(7, 3)], [toPosition(8, 0)]]);
});

it("indexes the batches of a topic that an entry before them opened, in the same block and in later ones", () => {
  const opened: LedgerEntry = {
    ...place,
    kind: "topic-opened",
    address: address("b"),
    name: "b",
    sender: address("c"),
  };
  const results = indexBlocks([block(1, [opened, committed("b", 1, 1)]), block(2, [committed("b", 2, 1)])], known);
  expect(results.flatMap((result) => result.batches.map((batch) => batch.topic))).toEqual(["b", "b"]);
  expect(results[0]?.opened).toMatchObject([{ name: "b", createdTimestamp: 1_700_000_000_000, sequence: 0 }]);
});

it("skips a topic with an invalid name and its events, but not events of other topics", () => {
  const opened: LedgerEntry = {
    ...place,
    kind: "topic-opened",
    address: address("b"),
    name: "b/#",
    sender: address("c"),
  };
  const [result] = indexBlocks([block(1, [opened, committed("b", 1, 5), committed("a", 1, 1)])], known);
  expect(result?.skippedEntries?.map((entry) => entry.reason)).toEqual([
    "topic name breaks the rules",
    "topic is not indexed",
  ]);
  expect(result?.batches.map((batch) => batch.firstPosition)).toEqual([toPosition(1, 0)]);
});

it("skips a topic whose name is taken by an indexed topic, or by one opened in these blocks", () => {
  const opened = (digit: string, name: string): LedgerEntry => {
    return { ...place, kind: "topic-opened", address: address(digit), name, sender: address("c") };
  };
  const results = indexBlocks([block(1, [opened("b", "a"), opened("d", "e")]), block(2, [opened("f", "e")])], known);
  expect(results.flatMap((result) => result.opened.map((topic) => topic.address))).toEqual([address("d")]);
  expect(results.flatMap((result) => (result.skippedEntries ?? []).map((entry) => entry.reason))).toEqual([
    "another topic has this name",
    "another topic has this name",
  ]);
});

it("records a malformed batch as skipped sequences, and reserves no positions for it", () => {
  const malformed: LedgerEntry = {
    ...place,
    kind: "events-malformed",
    publisher: address("f"),
    address: address("a"),
    firstSequence: 1,
    count: 2 ** 32 - 1,
    fault: "wrong-root",
    reason: "wrong root",
  };
  const [result] = indexBlocks([block(1, [malformed, committed("a", 2 ** 32, 1)])], known);
  expect(result?.skippedSequences).toEqual([{ name: "a", firstSequence: 1, count: 2 ** 32 - 1 }]);
  expect(result?.batches[0]).toMatchObject({ firstSequence: 2 ** 32, firstPosition: toPosition(1, 0) });
});

it("reserves positions for a batch beyond the limits, so that other batches get the same positions under wider limits", () => {
  const beyond: LedgerEntry = {
    ...place,
    kind: "events-malformed",
    publisher: address("f"),
    address: address("a"),
    firstSequence: 1,
    count: 3,
    fault: "beyond-limits",
    reason: "a content of 300000 bytes",
  };
  const [narrow] = indexBlocks([block(1, [beyond, committed("a", 4, 1)])], known);
  const [wide] = indexBlocks([block(1, [committed("a", 1, 3), committed("a", 4, 1)])], known);
  expect(narrow?.skippedSequences).toEqual([{ name: "a", firstSequence: 1, count: 3 }]);
  expect(narrow?.skippedEntries).toMatchObject([
    { code: "beyond-limits", reason: "a content of 300000 bytes", sender: address("f") },
  ]);
  expect(narrow?.batches).toEqual(wide?.batches.slice(1));
});

it("skips a batch that would exceed the largest sequence of its topic, and every later batch of the topic", () => {
  const last = Number.MAX_SAFE_INTEGER;
  const malformed: LedgerEntry = {
    ...place,
    kind: "events-malformed",
    publisher: address("f"),
    address: address("a"),
    firstSequence: last - 9,
    count: 2 ** 32 - 1,
    fault: "wrong-count",
    reason: "wrong count",
  };
  const entries = [committed("a", last - 11, 2), malformed, committed("a", last + 2 ** 32, 1)];
  const [result] = indexBlocks([block(1, entries)], known);
  expect(result?.batches.map(({ firstSequence }) => firstSequence)).toEqual([last - 11]);
  expect(result?.skippedSequences).toEqual([]);
  expect(result?.skippedEntries?.map(({ code }) => code)).toEqual(["sequence-too-high", "sequence-too-high"]);
});

it("skips a batch whose last sequence would be 2^53, which floating point rounds down", () => {
  const last = Number.MAX_SAFE_INTEGER;
  const [result] = indexBlocks([block(1, [committed("a", last, 2), committed("a", last, 1)])], known);
  expect(result?.batches.map(({ count }) => count)).toEqual([1]);
  expect(result?.skippedEntries?.map(({ code }) => code)).toEqual(["sequence-too-high"]);
});

it("skips a batch for which the block has no positions left", () => {
  const [result] = indexBlocks(
    [block(1, [committed("a", 1, eventsPerBlockMax - 1), committed("a", 1_048_576, 2)])],
    known,
  );
  expect(result?.batches).toHaveLength(1);
  expect(result?.skippedSequences).toEqual([{ name: "a", firstSequence: 1_048_576, count: 2 }]);
});

it("once a block has too few positions left for a batch, skips every later batch of the block, even one that would fit", () => {
  const first = committed("a", 1, eventsPerBlockMax - 1);
  const [result] = indexBlocks([block(1, [first, committed("a", 1_048_576, 2), committed("a", 1_048_578, 1)])], known);
  expect(result?.batches).toHaveLength(1);
  expect(result?.skippedSequences.map(({ count }) => count)).toEqual([2, 1]);
});
