import { createMPT, verifyMerkleProof } from "@ethereumjs/mpt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toHex } from "../bytes.ts";
import { keccak256 } from "../keccak/keccak.ts";
import { fromLatin1, toLatin1 } from "../latin1.ts";
import { emptyTrieRoot } from "./ordered-trie.ts";
import { toNibbles } from "./path.ts";
import { proveTrie, readTrie } from "./read.ts";
import { replaceInTrie, type TrieReplacement } from "./replace.ts";
import { buildTrie, type TrieUpdate, updateTrie } from "./update.ts";

// Few and short keys share paths, so that splits, merges and nodes inside their parents all happen.
const key = fc.oneof(
  fc.uint8Array({ minLength: 2, maxLength: 2 }).map((bytes) => bytes.map((byte) => byte & 0x11)),
  fc.uint8Array({ minLength: 2, maxLength: 2 }),
);
const value = fc.option(
  fc.integer({ min: 1, max: 60 }).map((length) => new Uint8Array(length).fill(length)),
  { nil: undefined, freq: 2 },
);
const batch = fc.uniqueArray(fc.tuple(key, value), {
  selector: ([bytes]) => toHex(bytes),
  minLength: 1,
  maxLength: 12,
});
const history = fc.array(batch, { minLength: 1, maxLength: 8 });

type Change = readonly [Uint8Array, Uint8Array | undefined];

/** The root and the changed nodes of an update, each with its earlier form. */
function toPlainUpdate({ root, nodes, before }: TrieUpdate) {
  const changed = Array.from(nodes, ([path, node]) => [
    path,
    toHex(node ?? new Uint8Array(0)),
    toHex(before.get(path) ?? new Uint8Array(0)),
  ]);
  return { root: toHex(root ?? emptyTrieRoot), changed: new Set(changed.map((each) => each.join(" "))) };
}

function toBytes(texts: ReadonlyMap<string, string>): Map<string, Uint8Array> {
  return new Map(Array.from(texts, ([path, text]) => [path, fromLatin1(text)]));
}

function toUpdate({ root, nodes, before }: TrieReplacement): TrieUpdate {
  return { root, nodes: toBytes(nodes), before: toBytes(before) };
}

class Stored {
  readonly nodes = new Map<string, Uint8Array>();
  root: Uint8Array = emptyTrieRoot;
  replacements = 0;

  apply(changes: readonly Change[]): void {
    const read = (path: string): Uint8Array | undefined => this.nodes.get(path);
    const trieChanges = changes.map(([bytes, content]) => ({ nibbles: toNibbles(bytes), value: content }));
    const update = updateTrie(read, trieChanges);
    const replaced = replaceInTrie((path) => {
      const node = read(path);
      return node && toLatin1(node);
    }, trieChanges);
    if (replaced !== undefined) {
      this.replacements += 1;
      expect(toPlainUpdate(toUpdate(replaced))).toEqual(toPlainUpdate(update));
    }
    for (const [path, node] of update.nodes) {
      expect(toHex(update.before.get(path) ?? new Uint8Array(0))).toBe(toHex(read(path) ?? new Uint8Array(0)));
      if (node === undefined) this.nodes.delete(path);
      else this.nodes.set(path, node);
    }
    this.root = update.root ?? emptyTrieRoot;
  }
}

function entry(each: number, fill: number): Change {
  return [keccak256(Buffer.from(String(each))), new Uint8Array(20 + (fill % 60)).fill(fill)];
}

describe("updateTrie", () => {
  it("updateTrie gives the same update as replaceInTrie whenever replaceInTrie gives one", () => {
    let replacements = 0;
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 0, max: 9_999 }), { minLength: 1, maxLength: 400 }),
        fc.infiniteStream(fc.integer({ min: 0, max: 9_999 })),
        (keys, picks) => {
          const stored = new Stored();
          stored.apply(keys.map((each) => entry(each, 1)));
          for (let round = 2; round < 5; round += 1) {
            const some = new Set(Array.from({ length: 30 }, () => keys[Number(picks.next().value) % keys.length] ?? 0));
            stored.apply([...some].map((each) => entry(each, round)));
          }
          replacements += stored.replacements;
        },
      ),
      { numRuns: 50 },
    );
    expect(replacements).toBeGreaterThan(100);
  });

  it("updateTrie gives the root of @ethereumjs/mpt after every batch, keeps no unneeded node, and proves the content", async () => {
    await fc.assert(
      fc.asyncProperty(history, async (batches) => {
        const stored = new Stored();
        const reference = await createMPT();
        const model = new Map<string, Change>();
        for (const changes of batches) {
          stored.apply(changes);
          for (const [bytes, content] of changes) {
            await reference.put(bytes, content ?? null);
            if (content === undefined) model.delete(toHex(bytes));
            else model.set(toHex(bytes), [bytes, content]);
          }
          expect(toHex(stored.root)).toBe(toHex(reference.root()));
        }
        expect([...stored.nodes.keys()].toSorted()).toEqual(expectedPaths([...model.values()]));
        for (const [bytes, content] of model.values()) {
          const expected = toHex(content ?? new Uint8Array(0));
          expect(toHex(readTrie((path) => stored.nodes.get(path), bytes) ?? new Uint8Array(0))).toBe(expected);
          const proof = proveTrie((path) => stored.nodes.get(path), bytes);
          expect(toHex((await verifyMerkleProof(bytes, proof)) ?? new Uint8Array(0))).toBe(expected);
          expect(toHex(keccak256(proof[0] ?? new Uint8Array(0)))).toBe(toHex(stored.root));
        }
      }),
      { numRuns: 300 },
    );
  });
});

/** Paths of the stored nodes of a trie that is built from scratch from these entries. */
function expectedPaths(entries: readonly Change[]): string[] {
  const paths: string[] = [];
  buildTrie(
    entries.map(([bytes, content]) => ({ nibbles: toNibbles(bytes), value: content })),
    (path) => paths.push(path),
  );
  return paths.toSorted();
}
