import type { Clock } from "../../ports/clock.ts";

/** How long a count that was read from the store is used, in milliseconds. Other nodes' changes in that time are not counted. */
const keptMsMax = 1000;
/** Maximum number of counts to keep. At the limit, the count that was read longest ago is removed. */
const countsMax = 10_000;

interface KeptCount {
  /** The count in the store when it was read, plus this node's changes since then. */
  count: number;
  /** Number of additions that are not settled: the store may or may not have them. */
  unsettled: number;
  readonly until: number;
}

/** An addition that was counted in advance. */
export interface Addition {
  /** Call it once; `isMade` is false if nothing was added. */
  settle(isMade: boolean): void;
}

/** Counts of the store, by key, for limits that need not be exact: each is read at most once a second, and this node's changes are added. */
export class KeptCounts {
  readonly #read: (key: string) => Promise<number>;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #counts = new Map<string, KeptCount>();
  readonly #reading = new Map<string, Promise<void>>();

  constructor(read: (key: string) => Promise<number>, clock: Pick<Clock, "monotonic">) {
    this.#read = read;
    this.#clock = clock;
  }

  /** Adds one to the count of `key`; undefined if the count would exceed `max`. Concurrent additions count each other. */
  async add(key: string, max: number): Promise<Addition | undefined> {
    for (;;) {
      const kept = this.#counts.get(key);
      if (kept === undefined || this.#clock.monotonic() >= kept.until) await this.#refresh(key);
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

  /** Concurrent callers share one read. */
  #refresh(key: string): Promise<void> {
    const earlier = this.#reading.get(key);
    if (earlier !== undefined) return earlier;
    const reading = this.#readAgain(key).finally(() => this.#reading.delete(key));
    this.#reading.set(key, reading);
    return reading;
  }

  async #readAgain(key: string): Promise<void> {
    const stored = await this.#read(key);
    const unsettled = this.#counts.get(key)?.unsettled ?? 0;
    this.#counts.delete(key);
    this.#counts.set(key, { count: stored + unsettled, unsettled, until: this.#clock.monotonic() + keptMsMax });
    const [oldest] = this.#counts.keys();
    if (this.#counts.size > countsMax && oldest !== undefined) this.#counts.delete(oldest);
  }
}
