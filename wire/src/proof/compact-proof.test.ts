import { describe, expect, test } from "vitest";
import { encodeEvents } from "../batch/encode-events.ts";
import { merklePath, merkleRoot } from "../batch/merkle.ts";
import { MerkleTree } from "../batch/merkle-tree.ts";
import { findCompactProof, formatCompactProof, verifyCompactProof } from "./compact-proof.ts";
import { toHexText } from "./hex.ts";
import { createDice } from "./testing/samples.ts";

const eventsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    content: new TextEncoder().encode(`event ${index}`),
    extensions: [["svc-n", String(index)]] as const,
  }));

describe("a compact proof", () => {
  test.each([1, 2, 3, 5, 6, 7, 8, 9, 100])("leads from each event of %i to the root, and from no other", (count) => {
    const events = eventsOf(count);
    const encoded = encodeEvents(events);
    const tree = new MerkleTree(encoded);
    const eventsRoot = toHexText(merkleRoot(encoded));
    for (const [index, event] of events.entries()) {
      const path = tree.path(index);
      expect(path).toEqual(merklePath(encoded, index));
      const proof = formatCompactProof({ index, count, path });
      expect(findCompactProof(proof)).toEqual({ index, count, path });
      expect(verifyCompactProof({ proof, event, eventsRoot })).toBe(true);
      const other = { ...event, content: Uint8Array.of(1) };
      expect(verifyCompactProof({ proof, event: other, eventsRoot })).toBe(false);
    }
  });

  test("is not the same after a change of any of its characters, but for a count whose tree has the same form", () => {
    const events = eventsOf(9);
    const encoded = encodeEvents(events);
    const [event] = events;
    if (event === undefined) throw new Error("no event");
    const proof = formatCompactProof({ index: 0, count: 9, path: merklePath(encoded, 0) });
    const eventsRoot = toHexText(merkleRoot(encoded));
    const dice = createDice(17);
    const start = proof.lastIndexOf("/");
    for (let tried = 0; tried < 1000; tried += 1) {
      const at = start + dice(proof.length - start);
      const character = String.fromCharCode(33 + dice(94));
      if (character === proof[at]) continue;
      const changed = proof.slice(0, at) + character + proof.slice(at + 1);
      expect(verifyCompactProof({ proof: changed, event, eventsRoot }), changed).toBe(false);
    }
  });

  test.each(["", "0", "0/1", "0/0/", "1/1/", "00/1/", "0/01/", "0/1/AA", "0/2/", "-1/1/", "0/1/=", "0/1/ "])(
    "is not %j",
    (text) => {
      expect(findCompactProof(text)).toBeUndefined();
    },
  );
});
