import { Allowance, type AllowanceSize } from "./allowance.ts";
import { BoundedMap } from "./bounded-map.ts";

export interface SourceAllowancesOptions {
  /** Allowance of each source. */
  readonly each: AllowanceSize;
  /** Allowance of each group of sources; left out if groups are not bounded. */
  readonly eachGroup?: AllowanceSize | undefined;
  /** Allowance of all sources together. */
  readonly all: AllowanceSize;
  /** Maximum number of sources, and of groups, to remember; a further one replaces the one that asked for a token longest ago. */
  readonly sourcesMax: number;
}

export interface Source {
  readonly name: string;
  /** Undefined if the source belongs to no group. */
  readonly group?: string | undefined;
}

/** Bounds each source, and each group of sources, so that none takes the whole allowance. */
export class SourceAllowances {
  readonly #options: SourceAllowancesOptions;
  readonly #clock: { monotonic(): number };
  readonly #sources: BoundedMap<string, Allowance>;
  readonly #groups: BoundedMap<string, Allowance>;
  readonly #all: Allowance;

  constructor(options: SourceAllowancesOptions, clock: { monotonic(): number }) {
    this.#options = options;
    this.#sources = new BoundedMap(options.sourcesMax);
    this.#groups = new BoundedMap(options.sourcesMax);
    this.#clock = clock;
    this.#all = new Allowance(options.all, clock);
  }

  /** Takes tokens of the source, then as many of its group and of all sources. Returns whether there were enough of each. */
  take({ name, group }: Source, count = 1): boolean {
    const { each, eachGroup } = this.#options;
    if (!this.#find(this.#sources, name, each).take(count)) return false;
    const mayTake =
      group === undefined || eachGroup === undefined || this.#find(this.#groups, group, eachGroup).take(count);
    return mayTake && this.#all.take(count);
  }

  #find(known: BoundedMap<string, Allowance>, name: string, size: AllowanceSize): Allowance {
    const allowance = known.get(name) ?? new Allowance(size, this.#clock);
    known.set(name, allowance); // Makes a known source the newest one too.
    return allowance;
  }
}
