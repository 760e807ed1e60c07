import type { EventBatch } from "../../domain/event.ts";
import { group } from "../../ports/store-examples.contract.ts";
import { testGroupRecords } from "../../ports/group-records.contract.ts";
import { testJournal } from "../../ports/journal.contract.ts";
import { testPublishKeys } from "../../ports/publish-keys.contract.ts";
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
