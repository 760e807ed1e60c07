import { emptyTrieRoot, keccak256, toLatin1 } from "@stele/eth/node";
import { expect, it } from "vitest";
import { NodeStore } from "./node-store.ts";

const node = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const hash = keccak256(node);

it("recall returns every byte of a node, in a copy that the caller may change", () => {
  const store = new NodeStore({ readNode: () => undefined, readCode: () => undefined });
  const nodes = new Map([["key", toLatin1(node)]]);
  store.apply(1n, { root: emptyTrieRoot, nodes, overwritten: new Map(), storage: new Map() });
  store.recall("key", hash)?.fill(0);
  expect(store.recall("key", hash)).toEqual(node);
  expect(store.findNode("key", hash)).toBe(toLatin1(node));
});

it("findNode reads a node from the file once, so that a later change of the row has no effect", () => {
  const rows = [Buffer.from(node)];
  const store = new NodeStore({ readNode: () => rows[0], readCode: () => undefined });
  expect(store.findNode("key", hash)).toBe(toLatin1(node));
  rows[0]?.fill(0);
  expect(store.findNode("key", hash)).toBe(toLatin1(node));
});
