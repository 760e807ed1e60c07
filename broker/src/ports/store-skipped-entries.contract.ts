import { expect, it } from "vitest";
import { type IndexedBlock, type SkippedEntry, type Store, skippedEntriesMax } from "./store.ts";
import { alpha, blockOf, group, hashOf, otherGroup, topicOf } from "./store-examples.contract.ts";

function entryOf(blockNumber: number, logIndex: number, changes: Partial<SkippedEntry> = {}): SkippedEntry {
  return {
    code: "wrong-root",
    reason: "root 0x01 where 0x02 was claimed",
    address: topicOf(alpha).address,
    blockNumber,
    transactionHash: hashOf(blockNumber * 1000 + logIndex),
    logIndex,
    ...changes,
  };
}

function leavingOut(...skippedEntries: readonly SkippedEntry[]): IndexedBlock {
  return blockOf(skippedEntries[0]?.blockNumber ?? 0, { skippedEntries });
}

/** The store's guarantees about skipped entries. */
export function testSkippedEntries(store: () => Store): void {
  it("are listed as given, newest first, up to the limit, per group", async () => {
    const sender = topicOf(alpha).sender;
    const first = entryOf(1, 9, { code: "topic-name-refused", reason: "a 'quote' and \u00e9", sender });
    const [second, third] = [entryOf(2, 2), entryOf(2, 11)];
    await store().applyBlocks(group, [leavingOut(first)]);
    await store().applyBlocks(group, [leavingOut(second, third), blockOf(3)]);
    await store().applyBlocks(otherGroup, [leavingOut(first)], { isFinal: true });
    expect(await store().listSkippedEntries(group, 9)).toEqual([third, second, first]);
    expect(await store().listSkippedEntries(group, 2)).toEqual([third, second]);
    expect(await store().listSkippedEntries(otherGroup, 9)).toEqual([first]);
  });

  it("are empty if nothing was skipped, or nothing is indexed", async () => {
    await store().applyBlocks(group, [blockOf(1)]);
    expect(await store().listSkippedEntries(group, 9)).toEqual([]);
    expect(await store().listSkippedEntries(otherGroup, 9)).toEqual([]);
  });

  it("are written with their blocks or not at all", async () => {
    await store().applyBlocks(group, [blockOf(1)]);
    const gap = { name: alpha, firstSequence: 1, count: 1 };
    await expect(
      store().applyBlocks(group, [blockOf(2, { skippedEntries: [entryOf(2, 0)], skippedSequences: [gap] })]),
    ).rejects.toThrow(/never opened/);
    expect(await store().listSkippedEntries(group, 9)).toEqual([]);
  });

  it("are rolled back with their blocks, only in that group, and can be recorded again", async () => {
    const [first, second, third] = [entryOf(1, 0), entryOf(2, 0), entryOf(3, 0)];
    const blocks = [leavingOut(first), leavingOut(second), leavingOut(third)];
    for (const one of [group, otherGroup]) await store().applyBlocks(one, blocks);
    await store().rollBack(group, { number: 1, hash: hashOf(1) });
    expect(await store().listSkippedEntries(group, 9)).toEqual([first]);
    await store().applyBlocks(group, blocks.slice(1));
    expect(await store().listSkippedEntries(group, 9)).toEqual([third, second, first]);
    await store().rollBack(group, undefined);
    expect(await store().listSkippedEntries(group, 9)).toEqual([]);
    expect(await store().listSkippedEntries(otherGroup, 9)).toEqual([third, second, first]);
  });

  it("are all kept in order, however many a block has", async () => {
    let block = 0;
    const all: SkippedEntry[] = [];
    for (const count of [1, 2, 3, 511, 512, 513, 1_337]) {
      block += 1;
      const many = Array.from({ length: count }, (_, index) =>
        entryOf(block, index, { reason: `entry ${index} of ${count}` }),
      );
      await store().applyBlocks(group, [leavingOut(...many)]);
      all.push(...many);
    }
    expect(await store().listSkippedEntries(group, skippedEntriesMax)).toEqual(all.toReversed());
  });

  it("lose the oldest above the limit of each group", async () => {
    await store().applyBlocks(otherGroup, [leavingOut(entryOf(1, 0))]);
    await store().applyBlocks(group, [leavingOut(entryOf(1, 0), entryOf(1, 1)), leavingOut(entryOf(2, 0))]);
    const many = Array.from({ length: skippedEntriesMax - 2 }, (_, index) => entryOf(3, index));
    await store().applyBlocks(group, [leavingOut(...many)]);
    const kept = await store().listSkippedEntries(group, 2 * skippedEntriesMax);
    expect(kept).toHaveLength(skippedEntriesMax);
    expect(kept.slice(-2)).toEqual([entryOf(2, 0), entryOf(1, 1)]);
    const more = Array.from({ length: skippedEntriesMax + 1 }, (_, index) => entryOf(4, index));
    await store().applyBlocks(group, [leavingOut(...more)]);
    expect(await store().listSkippedEntries(group, 2 * skippedEntriesMax)).toEqual(more.slice(1).toReversed());
    expect(await store().listSkippedEntries(otherGroup, 9)).toEqual([entryOf(1, 0)]);
  });
}
