import { createMPT, verifyMerkleProof } from "@ethereumjs/mpt";
import { RLP } from "@ethereumjs/rlp";
import { expect, it } from "vitest";
import { toHex } from "../bytes.ts";
import { emptyTrieRoot, OrderedTrie } from "./ordered-trie.ts";

// The key is the RLP of the index: from 128 on it has a header, from 256 on also a second payload byte.
it.each([1, 2, 16, 17, 127, 128, 129, 257, 300])(
  "a trie of %i values has the root of @ethereumjs/mpt and proves each value",
  async (count) => {
    const values = Array.from({ length: count }, (_, index) => new Uint8Array(40 + (index % 7)).fill(index + 1));
    const reference = await createMPT();
    for (const [index, value] of values.entries()) await reference.put(RLP.encode(index), value);
    const trie = new OrderedTrie(values);
    expect(toHex(trie.root)).toBe(toHex(reference.root()));
    for (const [index, value] of values.entries()) {
      const proven = await verifyMerkleProof(RLP.encode(index), [...trie.prove(index)], { root: trie.root });
      expect(toHex(proven ?? new Uint8Array(0))).toBe(toHex(value));
    }
  },
);

it("a trie without values has emptyTrieRoot", () => {
  expect(new OrderedTrie([]).root).toEqual(emptyTrieRoot);
});
