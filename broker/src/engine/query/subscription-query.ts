import type { NodeId } from "../../domain/node.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { Coordinator } from "../../ports/coordinator.ts";
import type { Store } from "../../ports/store.ts";
import type { NodeListing, SubscriptionStatus } from "../broker.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import { PendingCounts } from "./pending-counts.ts";

export interface SubscriptionQueryParts {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly progressWriter: ProgressWriter;
  /** Knows the nodes, where several share the store. */
  readonly coordinator?: Pick<Coordinator, "listNodes"> | undefined;
}

/** A subscription with what this node knows better than the store. */
interface Current {
  readonly subscription: Subscription;
  /** Whether it has been given everything that there is. */
  readonly isIdle: boolean;
}

/** Tells how far each subscription is. */
export class SubscriptionQuery {
  readonly #parts: SubscriptionQueryParts;

  constructor(parts: SubscriptionQueryParts) {
    this.#parts = parts;
  }

  async list(): Promise<readonly NodeListing[]> {
    const { store, coordinator } = this.#parts;
    const nodes = (await coordinator?.listNodes()) ?? [{ id: undefined, address: undefined }];
    const byOwner = new Map<NodeId | undefined, SubscriptionStatus[]>(nodes.map(({ id }) => [id, []]));
    const ownerOf = ({ owner }: Subscription): NodeId | undefined => coordinator && owner;
    const rows = (await store.listSubscriptions()).filter((row) => byOwner.has(ownerOf(row)));
    for (const status of await this.#toStatuses(rows)) byOwner.get(ownerOf(status))?.push(status);
    return nodes.map(({ id, address }) => ({ address, subscriptions: byOwner.get(id) ?? [] }));
  }

  async #toStatuses(rows: readonly Subscription[]): Promise<readonly SubscriptionStatus[]> {
    const all = rows.map((row) => this.#toCurrent(row));
    const counts = new PendingCounts(this.#parts.store);
    await counts.read(all.flatMap(({ subscription, isIdle }) => (isIdle ? [] : [subscription])));
    return all.map(({ subscription, isIdle }) => {
      return { ...subscription, notifyingCount: isIdle ? 0 : counts.get(subscription) };
    });
  }

  #toCurrent(stored: Subscription): Current {
    const worker = this.#parts.dispatcher.findWorker(stored.id);
    const progress = worker?.progress ?? this.#parts.progressWriter.find(stored.id);
    if (progress?.epoch !== stored.epoch) return { subscription: stored, isIdle: false };
    return { subscription: { ...stored, ...progress }, isIdle: worker?.isIdle === true };
  }
}
