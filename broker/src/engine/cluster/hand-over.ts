import type { Logger } from "../../lib/logger.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator, SubscriptionKey } from "../../ports/coordinator.ts";
import type { AttemptHistory } from "../deliver/attempt-history.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import { Deadline } from "../time.ts";

/** How long an attempt in progress may take while another node waits for its subscription, in milliseconds. */
export const handOverGraceMs = 1_000;

/** How long a hand-over waits for all workers before it hands over the subscriptions of those that have ended, in milliseconds. */
const soonMs = 50;
/** How often a stopping node releases the subscriptions whose workers have ended, in milliseconds. */
const releaseEveryMs = 100;

export interface HandOverOptions {
  readonly coordinator: Coordinator;
  readonly workers: DeliveryWorkers;
  readonly progressWriter: ProgressWriter;
  readonly history: Pick<AttemptHistory, "forget">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Ends workers and hands their subscriptions to other nodes. A slow receiver delays only its own subscription. */
export class HandOver {
  readonly #options: HandOverOptions;

  constructor(options: HandOverOptions) {
    this.#options = options;
  }

  /** Hands subscriptions to the nodes that asked for them: those whose workers end at once first, the rest when all workers have ended. */
  async give(keys: readonly SubscriptionKey[]): Promise<void> {
    const ended: SubscriptionKey[] = [];
    const ending = keys.map(async (key) => {
      await this.#options.workers.remove(key.id, handOverGraceMs);
      this.#options.history.forget(key.id);
      ended.push(key);
    });
    const all = Promise.all(ending);
    try {
      await this.#wait(all, soonMs);
      await this.#handOver(ended.splice(0));
    } finally {
      await all;
    }
    await this.#handOver(ended);
  }

  /**
   * Ends the workers of these subscriptions within `graceMs`, and releases each subscription as its worker ends: other nodes take it over while slower
   * workers still end. Subscriptions that are not released before `signal` aborts become free when this node leaves.
   */
  async giveAll(
    keys: readonly SubscriptionKey[],
    { graceMs, signal }: { readonly graceMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const ended: SubscriptionKey[] = [];
    const ending = new Set(keys);
    const all = Promise.all(
      keys.map(async (key) => {
        await this.#options.workers.remove(key.id, graceMs);
        ending.delete(key);
        ended.push(key);
      }),
    );
    await this.#wait(all, soonMs);
    while (ending.size > 0) {
      await untilAborted(this.#release(ended.splice(0)), signal);
      await this.#wait(all, releaseEveryMs);
    }
    await untilAborted(this.#release(ended), signal);
  }

  async #handOver(keys: readonly SubscriptionKey[]): Promise<void> {
    if (keys.length === 0) return;
    await this.#options.progressWriter.flush();
    await this.#options.coordinator.handOver(keys);
  }

  /** Never rejects. */
  async #release(keys: readonly SubscriptionKey[]): Promise<void> {
    if (keys.length === 0) return;
    try {
      await this.#options.progressWriter.flush();
      await this.#options.coordinator.release(keys);
    } catch (error) {
      this.#options.logger.warn("subscriptions not handed over; other nodes take them over when this node has left", {
        error,
      });
    }
  }

  async #wait(all: Promise<unknown>, delayMs: number): Promise<void> {
    using deadline = new Deadline(this.#options.clock, delayMs);
    await untilAborted(all, deadline.signal);
  }
}

/** Upper bound on shutdown time reserved for ending delivery and leaving, in milliseconds. */
export function leavingMs(graceMs: number): number {
  return Math.min(2 * handOverGraceMs, graceMs / 2);
}
