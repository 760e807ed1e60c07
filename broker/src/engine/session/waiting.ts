import { pause } from "../../lib/pause.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { EngineLimits } from "../limits.ts";

export interface WaitingParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: EngineLimits;
}

/** What the loops of a session or a share wait for: conditions that others change, and the store. */
export class Waiting {
  readonly #parts: WaitingParts;
  #sleepers: (() => void)[] = [];

  constructor(parts: WaitingParts) {
    this.#parts = parts;
  }

  /** Wakes every loop that waits. */
  wake(): void {
    const sleepers = this.#sleepers;
    this.#sleepers = [];
    for (const resume of sleepers) resume();
  }

  /**
   * Waits for the next {@link wake}. A loop asks for its condition itself after it: what one loop sees must still hold when it acts, and another one
   * may act in every turn between.
   */
  async woken(): Promise<void> {
    await new Promise<void>((resolve) => this.#sleepers.push(resolve));
  }

  /** Reads again until a read succeeds, so it must be one that moves nothing when it fails; undefined when `signal` aborts. */
  async forRead<Result>(signal: AbortSignal, read: () => Promise<Result>): Promise<Result | undefined> {
    const { clock, logger, limits } = this.#parts;
    while (!signal.aborted) {
      try {
        return await read();
      } catch (error) {
        logger.error("events of a session not read", { error });
        await pause(clock, limits.retryDelayMsMin, signal);
      }
    }
    return undefined;
  }
}
