import type { GroupId } from "../../domain/group-id.ts";
import { blockOf } from "../../domain/position.ts";
import type { Logger } from "../../lib/logger.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import type { Group } from "../group.ts";
import { PendingCounts } from "../query/pending-counts.ts";
import { FurthestBehind, type LaggingSubscription } from "./furthest-behind.ts";

/** Time between two measurements, in milliseconds. */
const measureEveryMs = 10_000;

/** How far this node's deliveries for a group are behind. */
export interface Lag {
  /** Maximum number of events that wait for one subscription. Counts only the `lagSubscriptionsMax` subscriptions that wait for the oldest events. */
  readonly events: number;
  /** Age of the oldest event that waits; undefined if the chain does not give the time of its block. */
  readonly seconds: number | undefined;
}

const noLag: Lag = { events: 0, seconds: 0 };

/** The oldest waiting event of a group, as far as this node knows. */
interface Oldest {
  /** Since when it waits, in milliseconds since the epoch: the time of its block, if the chain gave that time. */
  readonly at: number;
  /** The newest block of the index at {@link knownAt}. Later blocks came after that. */
  readonly head: number;
  /** When this became known, in milliseconds since the epoch. */
  readonly knownAt: number;
}

export interface DeliveryLagOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly slices: TimeSlices;
  readonly logger: Logger;
  readonly workers: DeliveryWorkers;
  readonly groups: { readonly all: readonly Group[] };
}

/** Measures periodically how far callbacks are behind, with a few reads of the store per group, however many subscriptions there are. */
export class DeliveryLag {
  readonly #options: DeliveryLagOptions;
  readonly #trouble: ReportedTrouble;
  #lags: ReadonlyMap<GroupId, Lag> = new Map();
  /** The oldest event of each group with waiting events. Gives an age while the chain does not answer: without one, an alert would end and begin again. */
  readonly #oldest = new Map<GroupId, Oldest>();
  #cancelTimer: (() => void) | undefined;
  #isStopped = false;

  constructor(options: DeliveryLagOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(options.logger, "delivery lag not measured", "delivery lag measured again");
  }

  /** Measures now, and then every {@link measureEveryMs}. Never rejects. */
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
      lags.set(group.id, await this.#lagOf(group, furthest.get(group.id)?.list() ?? []));
    }
    return lags;
  }

  async #findFurthest(): Promise<ReadonlyMap<GroupId, FurthestBehind>> {
    const furthest = new Map<GroupId, FurthestBehind>();
    for (const { subscription, worker } of this.#options.workers.all()) {
      await this.#options.slices.pause();
      if (worker.isIdle) continue;
      const { cursor } = worker.progress;
      const position = worker.waitingAt ?? cursor;
      const ofGroup = furthest.get(subscription.groupId) ?? new FurthestBehind();
      furthest.set(subscription.groupId, ofGroup);
      ofGroup.add({ subscription: { ...subscription, cursor }, position });
    }
    return furthest;
  }

  async #lagOf(group: Group, furthest: readonly LaggingSubscription[]): Promise<Lag> {
    const counts = new PendingCounts(this.#options);
    for (const { subscription } of furthest) counts.add(subscription);
    await counts.read();
    const behind = furthest.filter(({ subscription }) => counts.get(subscription) > 0);
    const [oldest] = behind;
    if (oldest === undefined) {
      this.#oldest.delete(group.id);
      return noLag;
    }
    const events = Math.max(...behind.map(({ subscription }) => counts.get(subscription)));
    const at = await this.#timeOf(group, blockOf(oldest.position));
    return { events, seconds: at === undefined ? undefined : Math.max(0, this.#options.clock.now() - at) / 1_000 };
  }

  /**
   * Since when the oldest event waits. While the chain does not answer, keeps the last known time, although another event may have become the oldest. But an
   * event after the last known head counts from `knownAt`. Otherwise the age would grow without end although events are delivered.
   */
  async #timeOf({ id, times, progress }: Group, block: number): Promise<number | undefined> {
    const last = this.#oldest.get(id);
    const at = (await times.find(block)) ?? (last !== undefined && block > last.head ? last.knownAt : undefined);
    if (at === undefined) return last?.at;
    this.#oldest.set(id, { at, head: progress.blockNumber, knownAt: this.#options.clock.now() });
    return at;
  }
}
