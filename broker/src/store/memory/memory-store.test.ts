import { testStore } from "../../ports/store.contract.ts";
import { createMemoryStore } from "./memory-store.ts";

testStore("memory", async () => createMemoryStore());
