import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import { withCalls } from "../../lib/with-calls.ts";
import { subscriptionOf } from "../../ports/store-examples.contract.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { checkStillFree } from "./free-identifier.ts";

const findFilterOwner = () => Promise.reject(new BrokerError("storeUnreachable"));

it("keeps a new subscription if the store does not answer whether a session has its identifier", async () => {
  const memory = createMemoryStore();
  const made = subscriptionOf(1);
  await memory.insertSubscription(made, 0);
  await checkStillFree(withCalls(memory, { sessions: withCalls(memory.sessions, { findFilterOwner }) }), made);
  expect(await memory.findSubscription(made.id)).toEqual(made);
});
