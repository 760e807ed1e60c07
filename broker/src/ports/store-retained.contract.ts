import { expect, it } from "vitest";
import { toPosition } from "../domain/position.ts";
import { parseTopicName } from "../domain/topic-name.ts";
import type { BlockRef } from "./ledger.ts";
import type { IndexedBlock, RetainedChange, RetainedEvent, RetainedPage, Store } from "./store.ts";
import { alpha, batchOf, beta, blockOf, group, hashOf, otherGroup, topicOf } from "./store-examples.contract.ts";

const opened = blockOf(1, { opened: [topicOf(alpha, 1), topicOf(beta, 2)] });
const all: RetainedPage = { prefix: "", after: undefined, limit: 100 };

function kept(name: typeof alpha, block: number, sequence = block - 1): RetainedChange {
  return { name, retained: { sequence, position: toPosition(block, 0) } };
}

/** A block with one event of alpha, and with the given changes of retained events. */
function blockWith(number: number, retained?: readonly RetainedChange[]): IndexedBlock {
  const batches = [batchOf(alpha, { block: number, sequence: number - 1, count: 1 })];
  return blockOf(number, { batches, ...(retained === undefined ? {} : { retained }) });
}

function event(topic: typeof alpha, block: number, sequence = block - 1): RetainedEvent {
  return { topic, sequence, position: toPosition(block, 0) };
}

const ref = (number: number): BlockRef => ({ number, hash: hashOf(number) });

/** The store's guarantees about retained events. */
export function testRetained(store: () => Store): void {
  it("lists no event if no block retained any", async () => {
    expect(await store().listRetained(group, all)).toEqual([]);
    await store().applyBlocks(group, [opened, blockWith(2)]);
    expect(await store().listRetained(group, all)).toEqual([]);
  });
  it("lists the newest retained event of each topic, and none of another group", async () => {
    await store().applyBlocks(group, [opened, blockWith(2, [kept(beta, 2, 9), kept(alpha, 2)])]);
    await store().applyBlocks(group, [blockWith(3), blockWith(4, [kept(alpha, 4)])]);
    await store().applyBlocks(otherGroup, [opened, blockWith(2, [kept(alpha, 2)])]);
    expect(await store().listRetained(group, all)).toEqual([event(alpha, 4), event(beta, 2, 9)]);
    expect(await store().listRetained(otherGroup, all)).toEqual([event(alpha, 2)]);
  });
  it("applies several changes of one topic in order, within a call and across calls", async () => {
    await store().applyBlocks(group, [opened, blockWith(2, [kept(alpha, 2)]), blockWith(3, [{ name: alpha }])]);
    expect(await store().listRetained(group, all)).toEqual([]);
    await store().applyBlocks(group, [blockWith(4, [kept(alpha, 4)])]);
    await store().applyBlocks(group, [blockWith(5, [{ name: alpha }, { name: beta }])]);
    expect(await store().listRetained(group, all)).toEqual([]);
  });
  it("lists the topics with a prefix in pages, in the order of their bytes", async () => {
    const names = ["B/1", "a", "a/1", "a/10", "a/2", "a1", "b", "b/\u0080", "b/~"].map((name) => parseTopicName(name));
    const sorted = names.toSorted();
    const topics = names.map((name, index) => topicOf(name, index + 1));
    const retained = names.map((name, index) => kept(name, 2, index + 1));
    await store().applyBlocks(group, [blockOf(1, { opened: topics }), blockOf(2, { retained })]);
    const listed = async (page: Partial<RetainedPage>) =>
      (await store().listRetained(group, { ...all, ...page })).map(({ topic }) => topic);
    expect(await listed({})).toEqual(sorted);
    expect(await listed({ prefix: "a/" })).toEqual(["a/1", "a/10", "a/2"]);
    expect(await listed({ prefix: "b" })).toEqual(["b", "b/~", "b/\u0080"]);
    expect(await listed({ prefix: "a", limit: 1 })).toEqual(["a"]);
    const pages: string[] = [];
    for (
      let page = await listed({ limit: 4 });
      page.length > 0;
      page = await listed({ limit: 4, after: page.at(-1) })
    ) {
      pages.push(...page);
    }
    expect(pages).toEqual(sorted);
    expect(await listed({ prefix: "a/", after: parseTopicName("a/1"), limit: 1 })).toEqual(["a/10"]);
  });
  it.each([false, true])(
    "keeps retained events of more topics than one statement has parameters (final: %s)",
    async (isFinal) => {
      const names = Array.from({ length: 1_100 }, (_, index) => parseTopicName(`many/${index}`));
      const topics = names.map((name, index) => topicOf(name, index + 1));
      const retained = names.map((name, index) => kept(name, 2, index + 1));
      await store().applyBlocks(group, [blockOf(1, { opened: topics }), blockOf(2, { retained })], { isFinal });
      await store().applyBlocks(group, [blockOf(3, { retained: names.slice(1).map((name) => ({ name })) })], {
        isFinal,
      });
      expect(await store().listRetained(group, all)).toEqual([event(names[0] ?? alpha, 2, 1)]);
    },
  );
  it("a rollback restores replaced and cleared retained events, and removes new ones", async () => {
    await store().applyBlocks(group, [opened, blockWith(2, [kept(alpha, 2)])]);
    await store().applyBlocks(group, [
      blockWith(3, [kept(alpha, 3), kept(beta, 3, 1)]),
      blockWith(4, [{ name: alpha }]),
    ]);
    await store().applyBlocks(group, [blockWith(5)]);
    await store().rollBack(group, ref(3));
    expect(await store().listRetained(group, all)).toEqual([event(alpha, 3), event(beta, 3, 1)]);
    await store().rollBack(group, ref(2));
    expect(await store().listRetained(group, all)).toEqual([event(alpha, 2)]);
    await store().rollBack(group, ref(1));
    expect(await store().listRetained(group, all)).toEqual([]);
  });
  it("a rollback to the empty index drops all retained events of the group, and of no other group", async () => {
    for (const one of [group, otherGroup]) await store().applyBlocks(one, [opened, blockWith(2, [kept(alpha, 2)])]);
    await store().rollBack(group, undefined);
    expect(await store().listRetained(group, all)).toEqual([]);
    expect(await store().listRetained(otherGroup, all)).toEqual([event(alpha, 2)]);
    await store().applyBlocks(group, [opened]);
    expect(await store().listRetained(group, all)).toEqual([]);
  });
  it("keeps retained events over a restart", async () => {
    await store().applyBlocks(group, [opened, blockWith(2, [kept(alpha, 2)])]);
    await store().stop();
    await store().start();
    expect(await store().listRetained(group, all)).toEqual([event(alpha, 2)]);
    await store().rollBack(group, ref(1));
    expect(await store().listRetained(group, all)).toEqual([]);
  });
}
