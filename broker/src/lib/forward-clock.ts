interface Sources {
  now(): number;
  monotonic(): number;
}

/** A wall clock that never goes back: where somebody sets the machine's clock back, it runs on from the highest time that it saw. */
export class ForwardClock {
  readonly #sources: Sources;
  /** Largest distance of the wall clock to the monotonic one so far. */
  #aheadMs: number;

  constructor(sources: Sources) {
    this.#sources = sources;
    this.#aheadMs = sources.now() - sources.monotonic();
  }

  /** Milliseconds since the epoch. */
  now(): number {
    const monotonic = this.#sources.monotonic();
    this.#aheadMs = Math.max(this.#aheadMs, this.#sources.now() - monotonic);
    return this.#aheadMs + monotonic;
  }
}
