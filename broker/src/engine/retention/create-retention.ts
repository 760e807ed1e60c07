import type { EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Store } from "../../ports/store.ts";
import { createRepairingStore, type RepairingStoreOptions } from "../integrity/repairing-store.ts";
import { ChainCopies, type ChainCopiesOptions } from "./chain-copies.ts";
import { createStoreWithDropped } from "./store-with-dropped.ts";
import { Retention, type RetentionOptions } from "./retention.ts";

/** Two views of the store: with and without the events that it has dropped. */
export interface EventReads {
  /** Also gives the events that the store has dropped. */
  readonly store: Store;
  /** Leaves out dropped events: for checks of the store, and for readers that must not wait for the chain. */
  readonly storeWithoutDropped: Store;
  readonly copies: ChainCopies;
  /** Gives subscriptions and sessions the events that `storeWithoutDropped` leaves out. */
  readonly readDropped: (groupId: GroupId, batches: readonly EventBatch[]) => Promise<readonly EventBatch[]>;
}

export function createReads(store: Store, options: ChainCopiesOptions & RepairingStoreOptions): EventReads {
  const storeWithoutDropped = createRepairingStore(store, options);
  const copies = new ChainCopies(options);
  const readDropped: EventReads["readDropped"] = (groupId, batches) => copies.readDropped(groupId, batches, "feed");
  return { store: createStoreWithDropped(storeWithoutDropped, copies), storeWithoutDropped, copies, readDropped };
}

/** How long the store keeps its copy of a group's events, in milliseconds; 0 for ever. */
export type RetentionOf = (groupId: GroupId) => number;

export function createRetention(
  options: Omit<RetentionOptions, "retentionMs"> & { readonly retentionMsOf?: RetentionOf | undefined },
): Retention {
  return new Retention({ ...options, retentionMs: options.retentionMsOf?.(options.groupId) });
}
