import { Allowance, type AllowanceSize } from "./allowance.ts";
import { BoundedMap } from "./bounded-map.ts";

export interface SourceAllowancesOptions {
  /** Allowance of each source. */
  readonly each: AllowanceSize;
  /** Allowance of all sources together. */
  readonly all: AllowanceSize;
  /** Maximum number of sources to remember; a further source replaces the one that asked for a token longest ago. */
  readonly sourcesMax: number;
}

/** Bounds each source, so that none takes the whole allowance. */
export class SourceAllowances {
  readonly #options: SourceAllowancesOptions;
  readonly #clock: { monotonic(): number };
  readonly #sources: BoundedMap<string, Allowance>;
  readonly #all: Allowance;

  constructor(options: SourceAllowancesOptions, clock: { monotonic(): number }) {
    this.#options = options;
    this.#sources = new BoundedMap(options.sourcesMax);
    this.#clock = clock;
    this.#all = new Allowance(options.all, clock);
  }

  /** Takes tokens of the source, then as many of all sources. Returns whether there were both. */
  take(source: string, count = 1): boolean {
    return this.#find(source).take(count) && this.#all.take(count);
  }

  #find(source: string): Allowance {
    const allowance = this.#sources.get(source) ?? new Allowance(this.#options.each, this.#clock);
    this.#sources.set(source, allowance); // The newest one now, even if it was known.
    return allowance;
  }
}
