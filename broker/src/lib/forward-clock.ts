/** A step of the wall clock forward by more than this is not believed at once, in milliseconds. */
const stepMsMax = 3_600_000;
/** A longer step is believed once it has lasted for so many milliseconds. */
const stepWaitMs = 600_000;

interface Sources {
  now(): number;
  monotonic(): number;
}

/**
 * A wall clock that never goes back: where somebody sets the machine's clock back, it runs on from the highest time that it believed. So a step far ahead is
 * believed only once it has lasted.
 */
export class ForwardClock {
  readonly #sources: Sources;
  /** Largest distance of the wall clock to the monotonic one so far. */
  #aheadMs: number;
  /** When the wall clock was first seen far ahead, by the monotonic one; undefined while it is not. */
  #steppedAt: number | undefined;

  constructor(sources: Sources) {
    this.#sources = sources;
    this.#aheadMs = sources.now() - sources.monotonic();
  }

  /** Milliseconds since the epoch. */
  now(): number {
    const monotonic = this.#sources.monotonic();
    const aheadMs = this.#sources.now() - monotonic;
    const hasStepped = aheadMs - this.#aheadMs > stepMsMax;
    this.#steppedAt = hasStepped ? (this.#steppedAt ?? monotonic) : undefined;
    const isBelieved = this.#steppedAt === undefined || monotonic - this.#steppedAt >= stepWaitMs;
    if (isBelieved) this.#aheadMs = Math.max(this.#aheadMs, aheadMs);
    return this.#aheadMs + monotonic;
  }
}
