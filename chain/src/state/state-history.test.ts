import { toLatin1 } from "@stele/eth/node";
import { describe, expect, it } from "vitest";
import { STATE_HISTORY_BLOCKS_MAX, STATE_HISTORY_BYTES_MAX } from "../limits.ts";
import type { NodeChanges } from "./node-changes.ts";
import { decodeNodes, shareNodes } from "./nodes-codec.ts";
import { StateHistory } from "./state-history.ts";

const node = (value: number) => toLatin1(Uint8Array.of(value, value));

/** A history in which each block from `first` on overwrote one node, whose bytes are the block's number. */
function createHistory(first: number, count: number): StateHistory {
  const history = new StateHistory();
  for (let block = first; block < first + count; block += 1) history.add(BigInt(block), new Map([["A", node(block)]]));
  return history;
}

/** The first bytes of node "A" in layers. */
function marks(layers: readonly NodeChanges[] | undefined): (number | undefined)[] | undefined {
  return layers?.map((layer) => layer.get("A")?.charCodeAt(0));
}

describe("nodes in shared memory", () => {
  it("decodeNodes returns the nodes that shareNodes encoded, including a missing and an empty node", () => {
    const nodes = new Map([
      ["A", node(1)],
      [`S${"\u00ff\u0000".repeat(40)}`, toLatin1(Uint8Array.from({ length: 600 }, (_, index) => index % 256))],
      ["A\u0001", undefined],
      ["A\u0002", ""],
    ]);
    const decoded = decodeNodes(Buffer.from(shareNodes(nodes)));
    expect([...decoded.keys()]).toEqual([...nodes.keys()]);
    for (const [key, value] of nodes) expect(decoded.get(key)).toBe(value);
  });

  it("decodeNodes returns an empty map if shareNodes got no nodes", () => {
    expect(decodeNodes(Buffer.from(shareNodes(new Map()))).size).toBe(0);
  });
});

describe("a history that follows another", () => {
  it("a history that follows another has all entries of the other, and then needs only new ones", () => {
    const follower = new StateHistory();
    follower.follow(createHistory(1, 3).share(follower.newest));
    const news = createHistory(1, 5).share(follower.newest);
    expect(news.map(({ blockNumber }) => blockNumber)).toEqual([4n, 5n]);
    follower.follow(news);
    expect(marks(follower.findSince(0n))).toEqual([1, 2, 3, 4, 5]);
    expect(marks(follower.findSince(2n, 4n))).toEqual([3, 4]);
  });

  it("a history that follows another drops the entries before a gap", () => {
    const follower = new StateHistory();
    follower.follow(createHistory(1, 3).share(undefined));
    follower.follow(createHistory(6, 2).share(3n));
    expect(follower.findSince(2n)).toBeUndefined();
    expect(marks(follower.findSince(5n))).toEqual([6, 7]);
  });

  it("findSince returns undefined if the history lacks the newest of the blocks", () => {
    const follower = new StateHistory();
    follower.follow(createHistory(1, 3).share(undefined));
    expect(marks(follower.findSince(1n, 3n))).toEqual([2, 3]);
    expect(follower.findSince(1n, 4n)).toBeUndefined();
  });
});

describe("a history that is full", () => {
  it("add drops the oldest block beyond STATE_HISTORY_BLOCKS_MAX blocks", () => {
    const history = createHistory(1, STATE_HISTORY_BLOCKS_MAX);
    expect(history.findSince(0n)).toHaveLength(STATE_HISTORY_BLOCKS_MAX);
    history.add(BigInt(STATE_HISTORY_BLOCKS_MAX + 1), new Map([["A", node(0)]]));
    expect(history.findSince(0n)).toBeUndefined();
    expect(history.findSince(1n)).toHaveLength(STATE_HISTORY_BLOCKS_MAX);
  });

  it("add drops the oldest blocks beyond STATE_HISTORY_BYTES_MAX bytes, and no longer counts dropped blocks", () => {
    const history = new StateHistory();
    const large = new Map([["A", "x".repeat(STATE_HISTORY_BYTES_MAX / 2 - 100)]]);
    for (let block = 1n; block <= 4n; block += 1n) history.add(block, large);
    expect(history.findSince(1n)).toBeUndefined();
    expect(history.findSince(2n)).toHaveLength(2);
  });
});
