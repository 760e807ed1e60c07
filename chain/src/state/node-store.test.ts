import { emptyTrieRoot, keccak256 } from "@stele/eth/node";
import { expect, it } from "vitest";
import { NodeStore } from "./node-store.ts";

it("keeps a copy of a node, which neither its giver nor its reader can change", () => {
  const store = new NodeStore({ readNode: () => undefined, readCode: () => undefined });
  const node = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const hash = keccak256(node);
  const expected = Buffer.from(node);
  const nodes = new Map([["key", node]]);
  store.apply(1n, { root: emptyTrieRoot, nodes, overwritten: new Map(), storage: new Map() });
  node.fill(0);
  expect(store.recall("key", hash)).toEqual(expected);
  store.findNode("key", hash)?.fill(0);
  expect(store.findNode("key", hash)).toEqual(expected);
});
