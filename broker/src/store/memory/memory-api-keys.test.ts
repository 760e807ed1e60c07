import { testApiKeys } from "../../ports/api-keys.contract.ts";
import { MemoryApiKeys } from "./memory-api-keys.ts";

testApiKeys("memory", async () => {
  const keys = new MemoryApiKeys();
  return [keys, keys];
});
