import { BoundedMap } from "./bounded-map.ts";

/** How long answers are kept, and how many. */
export interface BriefCacheOptions {
  /** A clock that never goes back, in milliseconds. */
  readonly now: () => number;
  readonly ageMsMax: number;
  /** Maximum number of answers; above it, the cache drops the oldest. */
  readonly entriesMax: number;
}

interface Entry<Value> {
  readonly askedAt: number;
  readonly answer: Promise<Value>;
}

/** Keeps answers, and failures, for a short time. While the cache keeps the answer for a key, it does not ask the source for that key again. */
export class BriefCache<Value> {
  readonly #options: BriefCacheOptions;
  readonly #entries: BoundedMap<string, Entry<Value>>;

  constructor(options: BriefCacheOptions) {
    this.#options = options;
    this.#entries = new BoundedMap(options.entriesMax);
  }

  /** Returns the kept answer for `key`; calls `ask` if there is none or it is too old. */
  read(key: string, ask: () => Promise<Value>): Promise<Value> {
    const { now, ageMsMax } = this.#options;
    const known = this.#entries.get(key);
    if (known !== undefined && now() - known.askedAt < ageMsMax) return known.answer;
    const answer = ask();
    answer.catch(() => undefined); // Each caller handles the rejection.
    this.#entries.set(key, { askedAt: now(), answer });
    return answer;
  }
}
