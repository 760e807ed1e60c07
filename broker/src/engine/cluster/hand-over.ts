import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator, SubscriptionKey } from "../../ports/coordinator.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import { Deadline, untilAborted } from "../time.ts";

/** How long an attempt under way may take when another node waits for its subscription. */
export const handOverGraceMs = 1_000;

/** How long workers that end at once are waited for before they are told from those with a slow receiver. */
const soonMs = 50;
/** Wait between two times that a stopping node lets go of those whose workers have ended meanwhile. */
const letGoEveryMs = 100;

export interface HandOverParts {
  readonly coordinator: Coordinator;
  readonly workers: DeliveryWorkers;
  readonly progressWriter: ProgressWriter;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Ends workers and gives their subscriptions away, so that none stands still for the slow receiver of another one. */
export class HandOver {
  readonly #parts: HandOverParts;

  constructor(parts: HandOverParts) {
    this.#parts = parts;
  }

  /** Gives to the nodes that ask: what ends at once first, the rest when all of it has ended. */
  async give(keys: readonly SubscriptionKey[]): Promise<void> {
    const ended: SubscriptionKey[] = [];
    const ending = keys.map(async (key) => {
      await this.#parts.workers.remove(key.id, handOverGraceMs);
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
   * Ends all of these workers within `graceMs`, and lets go of each as it ends: others take it over while slower ones still end. What could
   * not be let go, or not before `signal` aborts, they get when this node leaves.
   */
  async giveAll(
    keys: readonly SubscriptionKey[],
    { graceMs, signal }: { readonly graceMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const ended: SubscriptionKey[] = [];
    const ending = new Set(keys);
    const all = Promise.all(
      keys.map(async (key) => {
        await this.#parts.workers.remove(key.id, graceMs);
        ending.delete(key);
        ended.push(key);
      }),
    );
    await this.#wait(all, soonMs);
    while (ending.size > 0) {
      await untilAborted(this.#letGo(ended.splice(0)), signal);
      await this.#wait(all, letGoEveryMs);
    }
    await untilAborted(this.#letGo(ended), signal);
  }

  async #handOver(keys: readonly SubscriptionKey[]): Promise<void> {
    if (keys.length === 0) return;
    await this.#parts.progressWriter.flush();
    await this.#parts.coordinator.handOver(keys);
  }

  /** Never rejects. */
  async #letGo(keys: readonly SubscriptionKey[]): Promise<void> {
    if (keys.length === 0) return;
    try {
      await this.#parts.progressWriter.flush();
      await this.#parts.coordinator.letGo(keys);
    } catch (error) {
      this.#parts.logger.warn("subscriptions not handed over before leaving", { error });
    }
  }

  async #wait(all: Promise<unknown>, delayMs: number): Promise<void> {
    using deadline = new Deadline(this.#parts.clock, delayMs);
    await untilAborted(all, deadline.signal);
  }
}
