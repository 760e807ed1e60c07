import { GroupCommit } from "../../lib/group-commit.ts";
import type { Logger } from "../../lib/logger.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { Coordinator, SubscriptionKey } from "../../ports/coordinator.ts";
import type { AttemptHistory } from "../deliver/attempt-history.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import { ownedPageMax } from "./owned-subscriptions.ts";

/** How long an attempt in progress may take while another node waits for its subscription, in milliseconds. */
export const handOverGraceMs = 1_000;

export interface HandOverOptions {
  readonly coordinator: Coordinator;
  readonly workers: DeliveryWorkers;
  readonly progressWriter: ProgressWriter;
  readonly history: Pick<AttemptHistory, "forget">;
  readonly logger: Logger;
}

/** Ends workers and hands their subscriptions to other nodes. A slow receiver delays only its own subscription. */
export class HandOver {
  readonly #options: HandOverOptions;

  constructor(options: HandOverOptions) {
    this.#options = options;
  }

  async give(keys: readonly SubscriptionKey[]): Promise<void> {
    await this.#end(keys, handOverGraceMs, (ended) => this.#handOver(ended));
  }

  /**
   * Ends the workers of these subscriptions within `graceMs`, and releases the subscriptions. Those that are not released before `signal` aborts become free
   * when this node leaves.
   */
  async giveAll(
    keys: readonly SubscriptionKey[],
    { graceMs, signal }: { readonly graceMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    await this.#end(keys, graceMs, async (ended) => {
      if (!signal.aborted) await untilAborted(this.#release(ended, signal), signal);
    });
  }

  /** Ends workers, and passes on each subscription once its worker has ended: other nodes take it over while slower workers still end. */
  async #end(
    keys: readonly SubscriptionKey[],
    graceMs: number,
    pass: (ended: readonly SubscriptionKey[]) => Promise<unknown>,
  ): Promise<void> {
    const passing = new GroupCommit<SubscriptionKey, unknown>({
      commit: async (ended) => {
        await pass(ended);
        return ended;
      },
      itemsMax: ownedPageMax,
      mayBeCausedByOneItem: () => false,
    });
    const endOne = async (key: SubscriptionKey): Promise<void> => {
      await this.#options.workers.remove(key.id, graceMs);
      this.#options.history.forget(key.id);
      await passing.add(key);
    };
    await allEnded(keys.map(endOne));
  }

  async #handOver(keys: readonly SubscriptionKey[]): Promise<void> {
    await this.#options.progressWriter.flush();
    await this.#options.coordinator.handOver(keys);
  }

  /** Releases nothing once `signal` has aborted: the node leaves meanwhile, and the store stops. Never rejects. */
  async #release(keys: readonly SubscriptionKey[], signal: AbortSignal): Promise<void> {
    try {
      await this.#options.progressWriter.flush();
      if (!signal.aborted) await this.#options.coordinator.release(keys);
    } catch (error) {
      this.#options.logger.warn("subscriptions not handed over; other nodes take them over when this node has left", {
        error,
      });
    }
  }
}

/** Upper bound on shutdown time reserved for ending delivery and leaving, in milliseconds. */
export function leavingMs(graceMs: number): number {
  return Math.min(2 * handOverGraceMs, graceMs / 2);
}

/** Waits for all tasks even if one fails; then throws the first failure. */
export async function allEnded(tasks: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(tasks);
  await Promise.all(tasks);
}
