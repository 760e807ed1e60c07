import { testGroupRecords } from "../../ports/group-records.contract.ts";
import { testJournal } from "../../ports/journal.contract.ts";
import { testSecretRows } from "../../ports/secret-rows.contract.ts";
import { testStore } from "../../ports/store.contract.ts";
import { createMemoryStore } from "./memory-store.ts";

testGroupRecords("memory", async () => createMemoryStore());
testJournal("memory", async () => createMemoryStore());
testStore("memory", async () => createMemoryStore());
testSecretRows("memory", async () => createMemoryStore());
