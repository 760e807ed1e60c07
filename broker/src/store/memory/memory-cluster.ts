import type { GroupId } from "../../domain/group-id.ts";
import type { Subscription, SubscriptionId } from "../../domain/subscription.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator, GroupLease, SubscriptionKey } from "../../ports/coordinator.ts";
import type { GroupRecords } from "../../ports/group-records.ts";
import type { Journal } from "../../ports/journal.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import { type ApplyOptions, type IndexedBlock, LeaseLostError, type RollBack, type Store } from "../../ports/store.ts";
import { MemoryCoordinator } from "./memory-coordinator.ts";
import { MemoryStore } from "./memory-store.ts";

/** The store and the coordinator that several engines in one process share. */
export interface MemoryCluster {
  readonly store: Store & Journal & GroupRecords;
  readonly coordinator: Coordinator;
}

/** Creates a store and a coordinator over the same memory. Only the coordinator uses the clock. */
export function createMemoryCluster({ clock }: { readonly clock: Clock }): MemoryCluster {
  const subscriptions = new Map<SubscriptionId, Subscription>();
  const coordinator = new MemoryCoordinator({ clock, subscriptions });
  return { store: new SharedMemoryStore(subscriptions, coordinator), coordinator };
}

/** A store that refuses writes of a node that lost its lease or ownership, and sends a hint after each change of an index. */
class SharedMemoryStore extends MemoryStore {
  readonly #coordinator: MemoryCoordinator;

  constructor(subscriptions: Map<SubscriptionId, Subscription>, coordinator: MemoryCoordinator) {
    super(subscriptions, {
      onChanged: (id) => coordinator.send({ kind: "session", id }),
      isMember: (nodeId) => coordinator.isMember(nodeId),
    });
    coordinator.onGone((nodeId) => this.sessions.detachWhere(({ owner }) => owner === nodeId));
    this.#coordinator = coordinator;
  }

  override async applyBlocks(groupId: GroupId, blocks: readonly IndexedBlock[], options?: ApplyOptions): Promise<void> {
    this.#check(options?.lease);
    await super.applyBlocks(groupId, blocks, options);
    this.#coordinator.send({ kind: "index", groupId });
  }

  override async rollBack(groupId: GroupId, to: BlockRef | undefined, lease?: GroupLease): Promise<RollBack> {
    this.#check(lease);
    const done = this.rollBackTo(groupId, to, lease);
    if (lease !== undefined) this.#coordinator.refuseOthers(lease);
    this.#coordinator.send({ kind: "index", groupId });
    return done;
  }

  override async deleteSubscription(key: SubscriptionKey): Promise<boolean> {
    const isDeleted = super.deleteSubscription(key);
    this.#coordinator.forgetDeleted(key.id);
    return isDeleted;
  }

  #check(lease: GroupLease | undefined): void {
    if (lease !== undefined && !this.#coordinator.isNewest(lease)) throw new LeaseLostError(lease.groupId);
  }
}
