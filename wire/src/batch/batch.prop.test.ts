import { portableKeccak256 as keccak, MalformedError } from "@stele/eth";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { BatchWriter } from "./batch-writer.ts";
import { decodeEvents } from "./decode-events.ts";
import { type BatchEvent, encodedBytes, encodeEvents } from "./encode-events.ts";
import { leafHash, merklePath, merkleRoot, verifyPath } from "./merkle.ts";

// Lengths on both sides of every boundary of RLP.
const content = fc.oneof(
  fc.uint8Array({ maxLength: 3 }),
  fc.uint8Array({ maxLength: 80 }),
  fc.integer({ min: 54, max: 70_000 }).map((length) => new Uint8Array(length).fill(length)),
);
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 60 }),
  fc.string({ unit: "binary-ascii", maxLength: 60 }),
);

const batchEvent: fc.Arbitrary<BatchEvent> = fc.record({
  content,
  extensions: fc.array(fc.tuple(text, text), { maxLength: 4 }),
});

const batchEvents = fc.array(batchEvent, { minLength: 1, maxLength: 20 });

const plain = (events: readonly BatchEvent[]): unknown =>
  events.map(({ content, extensions }) => ({ content: Buffer.from(content).toString("hex"), extensions }));

/** The Merkle root by the plain rule: hash sorted pairs, and carry an odd hash up unchanged. */
function naiveRoot(hashes: readonly Uint8Array[]): Uint8Array {
  const [first] = hashes;
  if (hashes.length === 1 && first !== undefined) return first;
  const parents: Uint8Array[] = [];
  for (let index = 0; index < hashes.length; index += 2) {
    const pair = hashes.slice(index, index + 2).toSorted(Buffer.compare);
    parents.push(pair.length === 2 ? keccak(Buffer.concat(pair)) : (pair[0] ?? new Uint8Array()));
  }
  return naiveRoot(parents);
}

test("decodeEvents returns the events that encodeEvents encoded", () => {
  fc.assert(
    fc.property(batchEvents, (events) => {
      expect(plain(decodeEvents(encodeEvents(events)))).toEqual(plain(events));
    }),
  );
});

function writes(writer: BatchWriter, events: readonly BatchEvent[]): boolean {
  return writer.count === events.length && Buffer.compare(writer.finish(), encodeEvents(events)) === 0;
}

test("BatchWriter writes the same bytes as encodeEvents, also for a part of the events", () => {
  const place = fc.nat(20);
  const extra = { content: Uint8Array.of(1), extensions: [] };
  fc.assert(
    fc.property(batchEvents, place, place, (events, one, other) => {
      const writer = new BatchWriter();
      for (const event of events) writer.add(event);
      const [from, to] = [Math.min(one, other, events.length), Math.min(Math.max(one, other), events.length)];
      const part = writer.slice(from, to);
      expect([writes(writer, events), writes(part, events.slice(from, to))]).toEqual([true, true]);
      part.add(extra);
      expect([writes(part, [...events.slice(from, to), extra]), writes(writer, events)]).toEqual([true, true]);
    }),
  );
});

test("300 BatchWriters that are filled before the first is finished keep their own bytes", () => {
  const batches = Array.from({ length: 300 }, (_, index) => [
    { content: new Uint8Array(index % 90).fill(index), extensions: [] },
  ]);
  const writers = batches.map((events) => {
    const writer = new BatchWriter();
    for (const event of events) writer.add(event);
    return writer;
  });
  for (const [index, writer] of writers.entries()) expect(writes(writer, batches[index] ?? [])).toBe(true);
});

test("encodedBytes is the size of an event in a batch, without the list header around all events", () => {
  fc.assert(
    fc.property(batchEvent, (event) => {
      const size = encodedBytes(event);
      const header = encodeEvents([event]).length - size;
      expect(header).toBe(size <= 55 ? 1 : 1 + Math.ceil(Math.log2(size + 1) / 8));
    }),
  );
});

test("decodeEvents refuses changed, cut or random bytes, or returns events that encode to the same bytes", () => {
  const changed = fc.tuple(batchEvents, fc.nat(), fc.nat(255), fc.nat(3)).map(([events, place, byte, kind]) => {
    const bytes = encodeEvents(events);
    const at = place % bytes.length;
    if (kind === 0) return bytes.subarray(0, at);
    if (kind === 1) return Buffer.concat([bytes, Buffer.of(byte)]);
    if (kind === 2) return Buffer.concat([bytes.subarray(0, at), Buffer.of(byte), bytes.subarray(at)]);
    bytes[at] = byte;
    return bytes;
  });
  const hostile = fc.oneof(changed, fc.uint8Array({ maxLength: 40 }));
  fc.assert(
    fc.property(hostile, (bytes) => {
      try {
        expect(Buffer.from(encodeEvents(decodeEvents(bytes))).equals(bytes)).toBe(true);
      } catch (error) {
        if (!(error instanceof MalformedError)) throw error;
      }
    }),
    { numRuns: 3000 },
  );
});

test("merkleRoot equals the root by the plain rule, and every merklePath leads to it", () => {
  fc.assert(
    fc.property(fc.array(batchEvent, { minLength: 1, maxLength: 40 }), (events) => {
      const encoded = encodeEvents(events);
      const root = merkleRoot(encoded);
      const hashes = events.map((event, index) => leafHash(index, event));
      expect(root).toEqual(naiveRoot(hashes));
      for (const [index, leaf] of hashes.entries()) {
        const path = merklePath(encoded, index);
        expect(verifyPath({ leaf, path, root })).toBe(true);
        expect(verifyPath({ leaf: leafHash(index + 1, { content: leaf, extensions: [] }), path, root })).toBe(false);
      }
    }),
    { numRuns: 60 },
  );
});
