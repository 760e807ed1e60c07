import { expect, it } from "vitest";
import { parseTopicName } from "../domain/topic-name.ts";
import type { Store } from "./store.ts";
import { blockOf, group, hashOf, otherGroup, topicOf } from "./store-examples.contract.ts";

/** The part of the store's contract about lists of topics: those of a tenant, and those that grow meanwhile. */
export function testNameRanges(store: () => Store): void {
  it("lists and counts the topics in ranges of names, and compares names by character codes", async () => {
    // The order of a dictionary would ignore punctuation, and put small letters before capital ones.
    const names = ["b", "a/$", "a/B", "A/a", "a/", "a0", "a/~", "a-b", "a/a", "a"].map((name) =>
      parseTopicName(`${name}x`),
    );
    await store().applyBlocks(group, [blockOf(1, { opened: names.map((name, index) => topicOf(name, index + 1)) })]);
    const ranges = [
      { from: "a/", before: "a/$" },
      { from: "a/%", before: "a0" },
    ];
    const page = async (offset: number, limit: number): Promise<unknown> => {
      const { total, topics } = await store().listTopics(group, { offset, limit, ranges });
      return [total, ...topics.map((topic) => topic.name)];
    };
    expect(await page(0, 9)).toEqual([4, "a/Bx", "a/x", "a/~x", "a/ax"]);
    expect(await page(1, 2)).toEqual([4, "a/x", "a/~x"]);
    expect(await page(Number.MAX_SAFE_INTEGER, 9)).toEqual([4]);
    expect(await store().listTopics(group, { offset: 0, limit: 9, ranges: [] })).toEqual({ total: 0, topics: [] });
    expect(await store().listTopics(otherGroup, { offset: 0, limit: 9, ranges })).toEqual({ total: 0, topics: [] });
  });

  it("lists the few topics in a range of names among many others, in the order of opening", async () => {
    const names = Array.from({ length: 100 }, (_, index) => parseTopicName(`b/${100 - index}`));
    await store().applyBlocks(group, [blockOf(1, { opened: names.map((name, index) => topicOf(name, index + 1)) })]);
    const ranges = [{ from: "b/1", before: "b/11" }];
    const page = async (offset: number): Promise<unknown> => {
      const { total, topics } = await store().listTopics(group, { offset, limit: 2, ranges });
      return [total, ...topics.map((topic) => topic.name)];
    };
    expect([await page(0), await page(2), await page(9)]).toEqual([[3, "b/100", "b/10"], [3, "b/1"], [3]]);
  });

  it("lists as many topics as it counts, up to the limit, while topics are opened", async () => {
    const names = Array.from({ length: 60 }, (_, index) => parseTopicName(`a/${index + 1}`));
    const ranges = [{ from: "a/", before: "a0" }];
    for (let at = 0; at < names.length; at += 3) {
      const opened = names.slice(at, at + 3).map((name, index) => topicOf(name, at + index + 1));
      const [all, some] = await Promise.all([
        store().listTopics(group, { offset: 0, limit: 40 }),
        store().listTopics(group, { offset: 0, limit: 40, ranges }),
        store().applyBlocks(group, [blockOf(at / 3 + 1, { opened })]),
      ]);
      for (const { total, topics } of [all, some]) expect(topics).toHaveLength(Math.min(total, 40));
    }
  });

  it("counts the topics with a prefix again after blocks that open topics, and after a rollback", async () => {
    const many = Array.from({ length: 200 }, (_, index) => topicOf(parseTopicName(`a/many/${index}`), index + 1));
    await store().applyBlocks(group, [blockOf(1, { opened: many })]);
    const names = ["a/1", "b/1", "a/2", "a/3", "b/2", "a/4"].map((name) => parseTopicName(name));
    const counts = async (): Promise<unknown> =>
      Promise.all([store().countTopics(group, "a/", []), store().countTopics(group, "a/", ["a/1", "a/4", "b/1"])]);
    const seen: unknown[] = [await counts()];
    for (const [index, name] of names.entries()) {
      await store().applyBlocks(group, [blockOf(index + 2, { opened: [topicOf(name, index + 201)] })]);
      seen.push(await counts(), await counts());
    }
    const each = [
      [201, 200],
      [201, 200],
      [202, 201],
      [203, 202],
      [203, 202],
      [204, 202],
    ];
    expect(seen).toEqual([[200, 200], ...each.flatMap((count) => [count, count])]);
    await store().rollBack(group, { number: 4, hash: hashOf(4) });
    expect(await counts()).toEqual([202, 201]);
    const opened = [topicOf(parseTopicName("b/3"), 204), topicOf(parseTopicName("a/4"), 205)];
    await store().applyBlocks(group, [blockOf(5, { opened })]);
    expect(await counts()).toEqual([203, 201]);
    await store().rollBack(group, { number: 4, hash: hashOf(4) });
    const others = ["b/4", "b/5", "b/6"].map((name, index) => topicOf(parseTopicName(name), index + 204));
    await store().applyBlocks(group, [blockOf(5, { opened: others })]);
    expect(await counts()).toEqual([202, 201]);
    const ranges = [{ from: "b/", before: "b0" }];
    const { topics } = await store().listTopics(group, { offset: 1, limit: 2, ranges });
    expect(topics.map(({ name }) => name)).toEqual(["b/4", "b/5"]);
  });
}
