import { expect, it } from "vitest";
import type { EventBatch } from "../../domain/event.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { blockOf, group, topicOf } from "../../ports/store-examples.contract.ts";
import { testGroupRecords } from "../../ports/group-records.contract.ts";
import { testJournal } from "../../ports/journal.contract.ts";
import { keyRowOf, testPublishKeys } from "../../ports/publish-keys.contract.ts";
import { testSecretRows } from "../../ports/secret-rows.contract.ts";
import { testStore } from "../../ports/store.contract.ts";
import { testSessionStore } from "../../ports/session-store.contract.ts";
import { testDamage } from "../../ports/store-damage.contract.ts";
import { createMemoryStore } from "./memory-store.ts";

testGroupRecords("memory", async () => createMemoryStore());
testJournal("memory", async () => createMemoryStore());
testStore("memory", async () => createMemoryStore());
testPublishKeys("memory", async () => createMemoryStore());
testSessionStore("memory", async () => createMemoryStore());
testSecretRows("memory", async () => createMemoryStore());

testDamage("memory", async () => {
  const store = createMemoryStore();
  const damageEvents = async ({ topic, firstSequence: sequence }: EventBatch) => {
    const kept = await store.findBatch(group, { topic, sequence });
    if (kept !== undefined) kept.events[100] = (kept.events[100] ?? 0) ^ 1;
  };
  return { store, damageEvents };
});

it("counts a tenant's topics a hundred times in less than ten times the time of reading all topics once", async () => {
  const store = createMemoryStore();
  const opened = Array.from({ length: 20_000 }, (_, index) => topicOf(parseTopicName(`a/${index}`), index + 1));
  await store.applyBlocks(group, [blockOf(1, { opened })]);
  const count = (): Promise<number> => store.countTopics(group, "a/", ["a/1"]);
  expect(await count()).toBe(19_999);
  const listMs = await timeOf(() => store.listTopics(group, { offset: 0, limit: 20_000 }));
  const countsMs = await timeOf(async () => {
    for (let again = 0; again < 100; again += 1) await count();
  });
  expect(countsMs / listMs).toBeLessThan(10); // About 100 if each count read all topics.
});

it("expires thousands of keys, page by page, in little more time than it takes to record them", async () => {
  const store = createMemoryStore();
  const rows = Array.from({ length: 20_000 }, (_, index) => keyRowOf(index));
  const recordMs = await timeOf(() => store.recordPublishKeys(rows));
  const page = { before: Number.MAX_SAFE_INTEGER, atMost: 20 };
  const expireMs = await timeOf(async () => {
    for (let removed = 20; removed === 20; ) removed = await store.expirePublishKeys(group, page);
  });
  expect(await store.countPublishKeys(group, 1)).toEqual({ total: 0, byAccount: new Map() });
  expect(expireMs / recordMs).toBeLessThan(10); // About 30 if each page visited all rows.
});

async function timeOf(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}
