import { BoundedMap } from "../../lib/bounded-map.ts";
import { SharedCalls } from "../../lib/shared-calls.ts";
import type { Clock } from "../../ports/clock.ts";

/** How long the cache uses a count before it reads it again, in milliseconds. Meanwhile it does not notice the changes of other nodes. */
const keptMsMax = 1000;
/** Maximum number of cached counts. Above it, the cache drops the count that it read longest ago. */
const countsMax = 10_000;

interface KeptCount {
  /** The count in the store when it was read, plus this node's changes since then. */
  count: number;
  /** Number of additions in progress: the store may or may not have them. */
  unsettled: number;
  readonly until: number;
}

/** An addition to the store that is counted before it is made. */
export interface Addition {
  /** Call it once, when the addition has ended. `isMade`: whether the store has it. */
  settle(isMade: boolean): void;
}

/** Caches counts of the store, by key, for limits that need not be exact. Reads each at most once a second, and adds this node's changes. */
export class KeptCounts {
  readonly #read: (key: string) => Promise<number>;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #counts = new BoundedMap<string, KeptCount>(countsMax);
  readonly #reads = new SharedCalls<string, void>();

  constructor(read: (key: string) => Promise<number>, clock: Pick<Clock, "monotonic">) {
    this.#read = read;
    this.#clock = clock;
  }

  /** Adds one to the count of `key`; returns undefined if it would exceed `max`. The count includes concurrent additions. */
  async add(key: string, max: number): Promise<Addition | undefined> {
    for (;;) {
      const kept = this.#counts.get(key);
      if (kept === undefined || this.#clock.monotonic() >= kept.until)
        await this.#reads.run(key, () => this.#readAgain(key));
      else if (kept.count >= max) return undefined;
      else return this.#addTo(key, kept);
    }
  }

  /** Subtracts one from the count of `key`. */
  removed(key: string): void {
    const kept = this.#counts.get(key);
    if (kept !== undefined) kept.count -= 1;
  }

  #addTo(key: string, kept: KeptCount): Addition {
    kept.count += 1;
    kept.unsettled += 1;
    return {
      settle: (isMade) => {
        // The count may have been read again meanwhile; then it includes the unsettled additions.
        const current = this.#counts.get(key) ?? kept;
        current.unsettled -= 1;
        if (!isMade) current.count -= 1;
      },
    };
  }

  async #readAgain(key: string): Promise<void> {
    const stored = await this.#read(key);
    const unsettled = this.#counts.get(key)?.unsettled ?? 0;
    this.#counts.set(key, { count: stored + unsettled, unsettled, until: this.#clock.monotonic() + keptMsMax });
  }
}
