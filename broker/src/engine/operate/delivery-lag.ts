import type { GroupId } from "../../domain/group-id.ts";
import { blockOf, type Position } from "../../domain/position.ts";
import type { CallbackSubscription } from "../../domain/subscription.ts";
import type { Logger } from "../../lib/logger.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import type { Group } from "../group.ts";
import { PendingCounts } from "../query/pending-counts.ts";

/** Time between two measurements, in milliseconds. */
const measureEveryMs = 10_000;

/** Of the subscription of a group that waits for the oldest event, among those that this node delivers. */
export interface Lag {
  /** Matching events that its receiver has not accepted. */
  readonly events: number;
  /** Age of the oldest of them; undefined where the chain does not give the time of its block. */
  readonly seconds: number | undefined;
}

const noLag: Lag = { events: 0, seconds: 0 };

export interface DeliveryLagOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly slices: TimeSlices;
  readonly logger: Logger;
  readonly workers: DeliveryWorkers;
  readonly groups: { readonly all: readonly Group[] };
}

interface Waiting {
  readonly subscription: CallbackSubscription;
  /** The event that it waits for, or its cursor where the worker has not read that event yet. */
  readonly position: Position;
}

/** Measures again and again how far callbacks are behind: a few reads of the store for each group, however many subscriptions there are. */
export class DeliveryLag {
  readonly #options: DeliveryLagOptions;
  readonly #trouble: ReportedTrouble;
  #lags: ReadonlyMap<GroupId, Lag> = new Map();
  #cancelTimer: (() => void) | undefined;
  #isStopped = false;

  constructor(options: DeliveryLagOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(options.logger, "delivery lag not measured", "delivery lag measured again");
  }

  /** Never rejects. */
  async start(): Promise<void> {
    try {
      this.#lags = await this.#measure();
      this.#trouble.done();
    } catch (error) {
      if (!this.#isStopped) this.#trouble.failed(error);
    }
    if (this.#isStopped) return;
    this.#cancelTimer = this.#options.clock.after(measureEveryMs, () => void this.start());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  of(groupId: GroupId): Lag {
    return this.#lags.get(groupId) ?? noLag;
  }

  async #measure(): Promise<ReadonlyMap<GroupId, Lag>> {
    const furthest = await this.#findFurthest();
    const lags = new Map<GroupId, Lag>();
    for (const group of this.#options.groups.all) {
      const waiting = furthest.get(group.id);
      if (waiting !== undefined) lags.set(group.id, await this.#lagOf(group, waiting));
    }
    return lags;
  }

  async #findFurthest(): Promise<ReadonlyMap<GroupId, Waiting>> {
    const furthest = new Map<GroupId, Waiting>();
    for (const { subscription, worker } of this.#options.workers.all()) {
      await this.#options.slices.pause();
      if (worker.isIdle) continue;
      const { cursor } = worker.progress;
      const position = worker.waitingAt ?? cursor;
      const found = furthest.get(subscription.groupId);
      if (found !== undefined && found.position <= position) continue;
      furthest.set(subscription.groupId, { subscription: { ...subscription, cursor }, position });
    }
    return furthest;
  }

  async #lagOf(group: Group, { subscription, position }: Waiting): Promise<Lag> {
    const counts = new PendingCounts(this.#options);
    counts.add(subscription);
    await counts.read();
    const events = counts.get(subscription);
    if (events === 0) return noLag;
    const at = await group.times.find(blockOf(position));
    return { events, seconds: at === undefined ? undefined : Math.max(0, this.#options.clock.now() - at) / 1_000 };
  }
}
