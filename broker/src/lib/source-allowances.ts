import { Allowance, type AllowanceSize } from "./allowance.ts";

export interface SourceAllowancesOptions {
  /** Of one source. */
  readonly each: AllowanceSize;
  /** Of all sources together. */
  readonly all: AllowanceSize;
  /** Sources to remember; a further one takes the place of the one that was quiet for longest. */
  readonly sourcesMax: number;
}

/** Bounds what comes from each source, so that none takes the whole allowance. */
export class SourceAllowances {
  readonly #options: SourceAllowancesOptions;
  readonly #clock: { monotonic(): number };
  readonly #sources = new Map<string, Allowance>();
  readonly #all: Allowance;

  constructor(options: SourceAllowancesOptions, clock: { monotonic(): number }) {
    this.#options = options;
    this.#clock = clock;
    this.#all = new Allowance(options.all, clock);
  }

  /** Whether one more of a source is allowed now; then it is taken. */
  take(source: string): boolean {
    return this.#find(source).take() && this.#all.take();
  }

  /** The latest is last, so that the first is the one to forget. */
  #find(source: string): Allowance {
    const known = this.#sources.get(source);
    if (known !== undefined) this.#sources.delete(source);
    else if (this.#sources.size >= this.#options.sourcesMax) {
      const [oldest = ""] = this.#sources.keys();
      this.#sources.delete(oldest);
    }
    const allowance = known ?? new Allowance(this.#options.each, this.#clock);
    this.#sources.set(source, allowance);
    return allowance;
  }
}
