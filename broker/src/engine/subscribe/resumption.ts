import type { GroupId } from "../../domain/group-id.ts";
import { isCallback, type Subscription, type SubscriptionId } from "../../domain/subscription.ts";
import { backoffDelayMs } from "../../lib/backoff.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import { pause } from "../../lib/pause.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { Store } from "../../ports/store.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import type { Groups } from "../group.ts";
import type { Troubles } from "../integrity/troubles.ts";
import type { EngineLimits } from "../limits.ts";

export interface ResumptionOptions {
  readonly store: Store;
  readonly groups: Groups;
  readonly workers: DeliveryWorkers;
  readonly locks: KeyedMutex<SubscriptionId>;
  readonly slices: TimeSlices;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly troubles: Troubles;
  readonly logger: Logger;
  readonly limits: EngineLimits;
}

/** Number of subscriptions that start together. Calls for one of them wait until all have started. */
const pageMax = 100;

/**
 * Starts delivery to the subscriptions of earlier processes, in slices of the event loop, so that thousands of them delay neither calls nor each other.
 * If nodes share the store, `Deliveries` does this instead.
 */
export class Resumption {
  readonly #options: ResumptionOptions;
  readonly #stopping = new AbortController();
  readonly #begun = new Set<GroupId>();
  readonly #running = new Set<Promise<void>>();
  /** Groups that this broker does not serve, whose subscriptions it has reported in the log. */
  readonly #unserved = new Set<GroupId>();
  /** Whether {@link beginLater} waits. */
  #isWaiting = false;

  constructor(options: ResumptionOptions) {
    this.#options = options;
  }

  /** Starts deliveries of a group whose index has caught up. */
  begin(groupId: GroupId): void {
    this.#begun.add(groupId);
    const running = this.#run(groupId, this.#stopping.signal).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Starts deliveries of a group again after a rollback has stopped its workers; does nothing before {@link begin}. */
  restart(groupId: GroupId): void {
    if (this.#begun.has(groupId)) this.begin(groupId);
  }

  /** After `delayMs`, restarts deliveries that have lost their worker; does nothing before {@link begin}. */
  async beginLater(delayMs: number): Promise<void> {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    await pause(this.#options.clock, delayMs, this.#stopping.signal);
    this.#isWaiting = false;
    for (const groupId of this.#begun) this.begin(groupId);
  }

  /** Stops starting deliveries. Resolves when no start is in progress. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#running);
  }

  async #run(groupId: GroupId, signal: AbortSignal): Promise<void> {
    const { clock, limits, randomness, troubles, logger } = this.#options;
    const { startDelayMsMin: delayMsMin, startDelayMsMax: delayMsMax } = limits;
    const trouble = new ReportedTrouble(logger, "deliveries not resumed, trying again", "deliveries resumed");
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        await this.#startAll(groupId, signal);
        trouble.done();
        troubles.clearGroup(groupId);
        return;
      } catch (error) {
        trouble.failed(error);
        const reason = error instanceof Error ? error.message : String(error);
        troubles.noteGroup(groupId, `its subscriptions cannot be read: ${reason}`);
        await pause(
          clock,
          backoffDelayMs(failures, { delayMsMin, delayMsMax, fraction: randomness.fraction() }),
          signal,
        );
      }
    }
  }

  async #startAll(groupId: GroupId, signal: AbortSignal): Promise<void> {
    const { store, slices, groups } = this.#options;
    const unserved = new Map<GroupId, number>();
    for (let after: SubscriptionId | undefined; !signal.aborted; ) {
      const page = await store.listSubscriptions({ after, limit: pageMax });
      await slices.pause();
      for (const row of page) {
        if (groups.find(row.groupId) === undefined) unserved.set(row.groupId, (unserved.get(row.groupId) ?? 0) + 1);
      }
      const ids = page.filter((row) => this.#isDue(row, groupId)).map(({ id }) => id);
      await this.#startPage(groupId, { ids, signal });
      after = page.at(-1)?.id;
      if (page.length < pageMax) return this.#warn(unserved);
    }
  }

  /** Logs subscriptions of a removed or renamed group: nothing else would show that they get no events. */
  #warn(unserved: ReadonlyMap<GroupId, number>): void {
    const remedy = "configure a group with this id again, or unSubscribe them";
    for (const [groupId, count] of unserved) {
      if (this.#unserved.has(groupId)) continue;
      this.#unserved.add(groupId);
      this.#options.logger.warn("subscriptions get no events: no group has their groupId", { groupId, count, remedy });
    }
  }

  /** Starts workers. Reads their rows again while nothing can change them: no rollback can happen between the read of a cursor and the start of its worker. */
  async #startPage(
    groupId: GroupId,
    { ids, signal }: { readonly ids: readonly SubscriptionId[]; readonly signal: AbortSignal },
  ): Promise<void> {
    const { groups, locks, store, workers, slices } = this.#options;
    const start = async (): Promise<void> => {
      for (const row of await store.findSubscriptions(ids)) {
        if (signal.aborted) return;
        if (isCallback(row) && this.#isDue(row, groupId)) workers.add(row);
        await slices.pause();
      }
    };
    const group = groups.find(groupId);
    await locks.runAll(ids, () => (group === undefined ? start() : group.changes.shared(start)));
  }

  #isDue({ id, state, groupId }: Subscription, dueGroupId: GroupId): boolean {
    return state === "active" && groupId === dueGroupId && this.#options.workers.find(id) === undefined;
  }
}
