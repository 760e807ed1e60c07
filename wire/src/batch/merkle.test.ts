import { portableKeccak256 as keccak, MalformedError } from "@stele/eth";
import { expect, test } from "vitest";
import { batchEventsMax } from "./decode-events.ts";
import { encodeEvents } from "./encode-events.ts";
import { leafHash, merklePath, merkleRoot, verifyPath } from "./merkle.ts";

const events = Array.from({ length: 300 }, (_, index) => ({ content: Buffer.from(`event ${index}`), extensions: [] }));

test("leafHash hashes the RLP of index, content and extensions twice", () => {
  const preimage = Buffer.from("c881c801c46b82c3a9", "hex");
  const leaf = leafHash(200, { content: Uint8Array.of(1), extensions: [["k", "é"]] });
  expect(leaf).toEqual(keccak(keccak(preimage)));
});

test("in a batch of one event, the leaf is the root and the path is empty", () => {
  const [event] = events;
  if (event === undefined) throw new Error("no event");
  const encoded = encodeEvents([event]);
  expect(merkleRoot(encoded)).toEqual(leafHash(0, event));
  expect(merklePath(encoded, 0)).toEqual([]);
});

test("in a batch of three events, the third leaf moves up unchanged", () => {
  const leaves = events.slice(0, 3).map((event, index) => leafHash(index, event));
  const [first, second, third] = leaves;
  if (first === undefined || second === undefined || third === undefined) throw new Error("no leaf");
  const parent = keccak(Buffer.concat([first, second].toSorted(Buffer.compare)));
  const root = keccak(Buffer.concat([parent, third].toSorted(Buffer.compare)));
  const encoded = encodeEvents(events.slice(0, 3));
  expect(merkleRoot(encoded)).toEqual(root);
  expect(merklePath(encoded, 2)).toEqual([parent]);
});

test("merkleRoot accepts 65,536 events and refuses one more", () => {
  const payload = new Uint8Array(batchEventsMax + 1).fill(0xc0);
  const list = (count: number): Uint8Array =>
    Uint8Array.from([0xfa, 1, 0, count, ...payload.subarray(0, 0x1_0000 + count)]);
  expect(merkleRoot(list(0))).toHaveLength(32);
  expect(() => merkleRoot(list(1))).toThrow(MalformedError);
});

test("merkleRoot refuses an empty batch and malformed bytes", () => {
  expect(() => merkleRoot(Uint8Array.of(0xc0))).toThrow(MalformedError);
  expect(() => merkleRoot(Uint8Array.of(0xc1, 0x01))).toThrow(MalformedError);
});

test("merklePath throws RangeError for the index of an event that does not exist", () => {
  const encoded = encodeEvents(events);
  for (const index of [-1, 300, 0.5]) expect(() => merklePath(encoded, index)).toThrow(RangeError);
});

test("verifyPath returns false for hashes of another length", () => {
  const [event] = events;
  if (event === undefined) throw new Error("no event");
  const leaf = leafHash(0, event);
  expect(verifyPath({ leaf: leaf.subarray(1), path: [], root: leaf })).toBe(false);
  expect(verifyPath({ leaf, path: [leaf.subarray(1)], root: leaf })).toBe(false);
});
