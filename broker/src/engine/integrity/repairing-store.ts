import { BrokerError } from "@stele/wire";
import type { Subscription, SubscriptionId } from "../../domain/subscription.ts";
import type { Logger } from "../../lib/logger.ts";
import { withCalls } from "../../lib/with-calls.ts";
import type { Store } from "../../ports/store.ts";
import type { IndexRepair } from "./index-repair.ts";
import type { Troubles } from "./troubles.ts";

export interface RepairingStoreOptions {
  readonly indexRepair: IndexRepair;
  readonly troubles: Troubles;
  readonly logger: Logger;
}

/** A store that repairs damaged batches from the chain when they are read, and reports damaged subscriptions. */
export function createRepairingStore(store: Store, { indexRepair, troubles, logger }: RepairingStoreOptions): Store {
  const report = (rows: readonly Subscription[]): readonly Subscription[] => {
    for (const { id, state } of rows) if (state === "damaged") reportDamaged(id, { troubles, logger });
    return rows;
  };
  const findAll = async (ids: readonly SubscriptionId[]): Promise<readonly Subscription[]> => {
    const rows = report(await store.findSubscriptions(ids));
    const damaged = new Set(rows.flatMap(({ id, state }) => (state === "damaged" ? id : [])));
    for (const id of ids) if (troubles.damagedRows.has(id) && !damaged.has(id)) troubles.clear(id);
    return rows;
  };
  return withCalls(store, {
    findBatch: (groupId, event) => indexRepair.read(groupId, () => store.findBatch(groupId, event)),
    readBatches: (groupId, range) => indexRepair.read(groupId, () => store.readBatches(groupId, range)),
    countEventsAfter: (groupId, topic, after) =>
      indexRepair.read(groupId, () => store.countEventsAfter(groupId, topic, after)),
    countEventsAfterEach: (groupId, places) =>
      indexRepair.read(groupId, () => store.countEventsAfterEach(groupId, places)),
    countRange: (groupId, range) => indexRepair.read(groupId, () => store.countRange(groupId, range)),
    measureTopic: (groupId, range) => indexRepair.read(groupId, () => store.measureTopic(groupId, range)),
    findSubscription: async (id) => {
      const row = await store.findSubscription(id);
      return row && report([row])[0];
    },
    findSubscriptions: findAll,
    listSubscriptions: async (page) => report(await store.listSubscriptions(page)),
    searchSubscriptions: async (search, page) => report(await store.searchSubscriptions(search, page)),
    deleteSubscription: async (key) => {
      const isDeleted = await store.deleteSubscription(key);
      if (isDeleted) troubles.clear(key.id);
      return isDeleted;
    },
  });
}

const remedy = "unSubscribe it, then subscribe again with the offset from which to deliver";

function reportDamaged(id: Subscription["id"], { troubles, logger }: Omit<RepairingStoreOptions, "indexRepair">): void {
  if (troubles.damagedRows.has(id)) return;
  troubles.noteDamagedRow(id, `its row in the store is damaged; ${remedy}`);
  logger.error("subscription not delivered: its row in the store is damaged", { subscriptionId: id, remedy });
}

/** The refusal of a call for a damaged subscription: its cursor is unknown. */
export function damagedSubscription(id: Subscription["id"]): BrokerError {
  const details = `the row of subscription ${id} does not match its checksum, so its cursor is unknown: ${remedy}`;
  return new BrokerError("indexDamaged", { details });
}
