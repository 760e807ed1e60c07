import { withCalls } from "../../lib/with-calls.ts";
import type { Store } from "../../ports/store.ts";
import type { ChainCopies } from "./chain-copies.ts";

/** A store that reads dropped events from the chain, so that every batch has its events. */
export function createStoreWithDropped(store: Store, copies: Pick<ChainCopies, "readDropped">): Store {
  return withCalls(store, {
    findBatch: async (groupId, event) => {
      const batch = await store.findBatch(groupId, event);
      return batch && (await copies.readDropped(groupId, [batch], "call"))[0];
    },
    readBatches: async (groupId, range) => copies.readDropped(groupId, await store.readBatches(groupId, range), "call"),
  });
}
