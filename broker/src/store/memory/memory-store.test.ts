import { testJournal } from "../../ports/journal.contract.ts";
import { testStore } from "../../ports/store.contract.ts";
import { createMemoryStore } from "./memory-store.ts";

testJournal("memory", async () => createMemoryStore());
testStore("memory", async () => createMemoryStore());
