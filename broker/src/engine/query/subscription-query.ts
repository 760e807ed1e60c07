import type { NodeId } from "../../domain/node.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Coordinator } from "../../ports/coordinator.ts";
import type { Store } from "../../ports/store.ts";
import type { NodeListing, SubscriptionStatus } from "../broker.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import { subscriptionsOf } from "../subscriptions-of.ts";
import { type Current, toCurrent } from "./current-progress.ts";
import { PendingCounts } from "./pending-counts.ts";
import { type SessionEntriesOptions, type SessionEntry, sessionEntriesOf } from "./session-entries.ts";

export interface SubscriptionQueryOptions {
  readonly store: Store;
  readonly slices: TimeSlices;
  readonly workers: DeliveryWorkers;
  readonly progressWriter: ProgressWriter;
  /** Undefined if the broker is a single node. `address` is this node's address: the listing shows a session there if no listed node owns the session. */
  readonly nodes: { readonly coordinator: Pick<Coordinator, "listNodes">; readonly address: string } | undefined;
  readonly sessions: SessionEntriesOptions["sessions"];
}

/** Lists subscriptions with their progress, including the filters of sessions. */
export class SubscriptionQuery {
  readonly #options: SubscriptionQueryOptions;

  constructor(options: SubscriptionQueryOptions) {
    this.#options = options;
  }

  async list(): Promise<readonly NodeListing[]> {
    const { coordinator, address: ownAddress } = this.#options.nodes ?? {};
    const nodes = (await coordinator?.listNodes()) ?? [{ id: undefined, address: undefined }];
    const byOwner = new Map<NodeId | undefined, SubscriptionStatus[]>(nodes.map(({ id }) => [id, []]));
    const ownerOf = ({ owner }: Subscription): NodeId | undefined => coordinator && owner;
    for await (const status of this.#statuses((row) => byOwner.has(ownerOf(row)))) {
      byOwner.get(ownerOf(status))?.push(status);
    }
    const own = byOwner.get((nodes.find(({ address }) => address === ownAddress) ?? nodes[0])?.id);
    for await (const status of this.#ofSessions()) (byOwner.get(ownerOf(status)) ?? own)?.push(status);
    return nodes.map(({ id, address }) => ({ address, subscriptions: byOwner.get(id) ?? [] }));
  }

  async *#statuses(isListed: (row: Subscription) => boolean): AsyncIterable<SubscriptionStatus> {
    const counts = new PendingCounts(this.#options);
    const all: Current[] = [];
    for await (const row of subscriptionsOf(this.#options)) {
      if (!isListed(row)) continue;
      const current = toCurrent(row, this.#options);
      if (!current.isIdle) counts.add(current.subscription);
      all.push(current);
    }
    await counts.read();
    for (const { subscription, isIdle } of all) {
      yield { ...subscription, notifyingCount: isIdle ? 0 : counts.get(subscription) };
      await this.#options.slices.pause();
    }
  }

  /** The filters of sessions, each as a subscription. */
  async *#ofSessions(): AsyncIterable<SubscriptionStatus> {
    const counts = new PendingCounts(this.#options);
    const all: SessionEntry[] = [];
    for await (const entry of sessionEntriesOf(this.#options)) {
      counts.add(entry.pending);
      counts.add(entry.start);
      all.push(entry);
    }
    await counts.read();
    for (const { subscription, pending, start } of all) {
      const notifyingCount = counts.get(pending);
      yield { ...subscription, notifyingCount, notifiedCount: Math.max(0, counts.get(start) - notifyingCount) };
      await this.#options.slices.pause();
    }
  }
}
