/** Longest step forward of the wall clock that this clock follows at once, in milliseconds. */
const stepMsMax = 3_600_000;
/** How long a longer step must last before this clock follows it, in milliseconds. */
const stepWaitMs = 600_000;

interface Sources {
  now(): number;
  monotonic(): number;
}

/**
 * A wall clock that never goes back: if somebody sets the machine's clock back, it continues from the highest time so far. It could not undo a wrong step
 * ahead, so it follows a long step only once the step has lasted {@link stepWaitMs}.
 */
export class ForwardClock {
  readonly #sources: Sources;
  /** Largest difference between the wall clock and the monotonic clock that this clock has followed. */
  #aheadMs: number;
  /** Monotonic time at which the wall clock was first seen far ahead; undefined while it is not. */
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
