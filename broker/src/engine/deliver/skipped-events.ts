import { type DeadLetter, deadLettersMax } from "../../domain/dead-letter.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Store } from "../../ports/store.ts";
import type { ProgressWriter } from "./progress-writer.ts";

export interface SkippedEventsOptions {
  readonly id: SubscriptionId;
  readonly store: Pick<Store, "deadLetters">;
  readonly progressWriter: Pick<ProgressWriter, "flush">;
  readonly logger: Logger;
  /** Dead letters whose events are behind the cursor, and which are not stored yet. */
  readonly unsaved: () => readonly DeadLetter[];
  readonly stopping: CancelSignal;
  /** The store failed so many times in a row. Returns when it is worth another try. */
  readonly onFailed: (failures: number) => Promise<void>;
}

/** `full`: the subscription has as many dead letters as it may have. `stopped`: the worker stops first. */
export type Room = "free" | "full" | "stopped";

/**
 * Keeps the number of dead letters of one subscription within its limit. Only its worker adds any, so what is free when it looks stays free: others remove
 * them.
 */
export class SkippedEvents {
  readonly #options: SkippedEventsOptions;
  /** Dead letters whose events are not behind the cursor yet. */
  #ahead = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: SkippedEventsOptions) {
    this.#options = options;
  }

  /** Takes room for so many dead letters. One call after the other: lanes may skip events at once. */
  take(count: number): Promise<Room> {
    const taking = this.#turn.then(() => this.#take(count));
    this.#turn = taking;
    return taking;
  }

  /** The cursor has passed the events of so many. */
  passed(count: number): void {
    this.#ahead -= count;
  }

  #reportFull(): void {
    const { id: subscriptionId, logger } = this.#options;
    const remedy = "redeliver or discard some, then resume the subscription";
    logger.error("no room for dead letters", { subscriptionId, most: deadLettersMax, remedy });
  }

  /** Never rejects. */
  async #take(count: number): Promise<Room> {
    for (let failures = 1; !this.#options.stopping.aborted; failures += 1) {
      try {
        const isFree = (await this.#count()) + count <= deadLettersMax;
        if (isFree) this.#ahead += count;
        else this.#reportFull();
        return isFree ? "free" : "full";
      } catch (error) {
        this.#options.logger.error("dead letters not counted, trying again", {
          subscriptionId: this.#options.id,
          error,
        });
        await this.#options.onFailed(failures);
      }
    }
    return "stopped";
  }

  /** What a write stores meanwhile counts twice, never not at all. */
  async #count(): Promise<number> {
    const { id, store, progressWriter, unsaved } = this.#options;
    await progressWriter.flush();
    const pending = this.#ahead + unsaved().length;
    return pending + (await store.deadLetters.count(id));
  }
}
