import { describe, expect, test } from "vitest";
import { encodeEvents } from "../batch/encode-events.ts";
import { merklePath, merkleRoot } from "../batch/merkle.ts";
import { MerkleTree } from "../batch/merkle-tree.ts";
import { findCheckedBatch, findCompactProof, formatCompactProof, verifyCompactProof } from "./compact-proof.ts";
import { publishedLog } from "./testing/published-log.ts";
import { createDice } from "./testing/samples.ts";

const eventsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    content: new TextEncoder().encode(`event ${index}`),
    extensions: [["svc-n", String(index)]] as const,
  }));

describe("verifyCompactProof and findCompactProof", () => {
  test.each([1, 2, 3, 5, 6, 7, 8, 9, 100])(
    "verifyCompactProof accepts the proof of each of %i events, and refuses it for another content",
    (count) => {
      const events = eventsOf(count);
      const encoded = encodeEvents(events);
      const tree = new MerkleTree(encoded);
      const batch = findCheckedBatch(publishedLog(events));
      for (const [index, event] of events.entries()) {
        const path = tree.path(index);
        expect(path).toEqual(merklePath(encoded, index));
        const proof = formatCompactProof({ index, count, path });
        expect(findCompactProof(proof)).toEqual({ index, count, path });
        expect(verifyCompactProof({ proof, event, batch })).toBe(true);
        const other = { ...event, content: Uint8Array.of(1) };
        expect(verifyCompactProof({ proof, event: other, batch })).toBe(false);
      }
    },
  );

  test("verifyCompactProof refuses a proof after a change of any character", () => {
    const events = eventsOf(9);
    const encoded = encodeEvents(events);
    const [event] = events;
    if (event === undefined) throw new Error("no event");
    const proof = formatCompactProof({ index: 0, count: 9, path: merklePath(encoded, 0) });
    const batch = findCheckedBatch(publishedLog(events));
    const dice = createDice(17);
    for (let tried = 0; tried < 1000; tried += 1) {
      const at = dice(proof.length);
      const character = String.fromCharCode(33 + dice(94));
      if (character === proof[at]) continue;
      const changed = proof.slice(0, at) + character + proof.slice(at + 1);
      expect(verifyCompactProof({ proof: changed, event, batch }), changed).toBe(false);
    }
  });

  test.each(["", "0", "0/1", "0/0/", "1/1/", "00/1/", "0/01/", "0/1/AA", "0/2/", "-1/1/", "0/1/=", "0/1/ "])(
    "findCompactProof returns undefined for %j",
    (text) => {
      expect(findCompactProof(text)).toBeUndefined();
    },
  );
});

describe("findCheckedBatch", () => {
  const events = eventsOf(3);
  const encoded = encodeEvents(events);
  const [first, , last] = events;
  if (first === undefined || last === undefined) throw new Error("no events");
  const proof = formatCompactProof({ index: 2, count: 3, path: merklePath(encoded, 2) });

  test("findCheckedBatch returns the batch of an honest log", () => {
    const batch = findCheckedBatch(publishedLog(events));
    expect(batch).toMatchObject({ firstSequence: 1, publisher: `0x${"ab".repeat(20)}`, events });
    expect(verifyCompactProof({ proof, event: last, batch })).toBe(true);
  });

  test("findCheckedBatch refuses a log with one event that claims the root of three, so that a proof of the third does not verify", () => {
    const log = publishedLog([first], { eventsRoot: merkleRoot(encoded) });
    expect(verifyCompactProof({ proof, event: last, batch: findCheckedBatch(log) })).toBe(false);
  });

  test.each([1, 2, 4])("findCheckedBatch refuses a log that claims %i events and contains 3", (count) => {
    expect(verifyCompactProof({ proof, event: last, batch: findCheckedBatch(publishedLog(events, { count })) })).toBe(
      false,
    );
  });

  test("findCheckedBatch refuses a log whose events have another root", () => {
    const other = publishedLog(eventsOf(4).slice(1), { eventsRoot: merkleRoot(encoded) });
    expect(verifyCompactProof({ proof, event: last, batch: findCheckedBatch(other) })).toBe(false);
  });

  test.each([
    ["another event signature", { ...publishedLog(events), topics: publishedLog(events).topics.toReversed() }],
    ["no topics", { ...publishedLog(events), topics: [] }],
    ["topics that are not hex", { ...publishedLog(events), topics: ["EventsPublished"] }],
    ["no data", { ...publishedLog(events), data: "0x" }],
    ["data that is not hex", { ...publishedLog(events), data: "events" }],
  ])("findCheckedBatch refuses a log with %s", (_, log) => {
    expect(findCheckedBatch(log)).toBeUndefined();
  });
});
