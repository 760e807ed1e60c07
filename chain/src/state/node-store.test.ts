import { emptyTrieRoot, keccak256 } from "@stele/eth/node";
import { expect, it } from "vitest";
import { NodeStore } from "./node-store.ts";

it("keeps a node without the page of memory that it shared with other buffers", () => {
  const store = new NodeStore({ readNode: () => undefined, readCode: () => undefined });
  const node = Buffer.from("a node of a trie");
  const nodes = new Map([["key", node]]);
  store.apply(1n, { root: emptyTrieRoot, nodes, overwritten: new Map(), storage: new Map() });
  const kept = store.recall("key", keccak256(node));
  expect(kept).toEqual(new Uint8Array(node));
  expect(kept?.buffer.byteLength).toBe(node.length);
});
