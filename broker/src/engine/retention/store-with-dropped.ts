import type { Store } from "../../ports/store.ts";
import type { ChainCopies } from "./chain-copies.ts";

type Own = Pick<Store, "findBatch" | "readBatches">;

/** A store that reads dropped events from the chain, so that every batch has its events. */
export function createStoreWithDropped(store: Store, copies: Pick<ChainCopies, "readDropped">): Store {
  const own: Own = {
    findBatch: async (groupId, event) => {
      const batch = await store.findBatch(groupId, event);
      return batch && (await copies.readDropped(groupId, [batch], "call"))[0];
    },
    readBatches: async (groupId, range) => copies.readDropped(groupId, await store.readBatches(groupId, range), "call"),
  };
  return new Proxy(store, { get: (_, name) => Reflect.get(own, name) ?? bound(store, name) });
}

function bound(store: Store, name: string | symbol): unknown {
  const member: unknown = Reflect.get(store, name);
  return typeof member === "function" ? member.bind(store) : member;
}
