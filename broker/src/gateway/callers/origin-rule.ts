/** Decides which foreign origins are allowed. */
export class OriginRule {
  readonly #origins: ReadonlySet<string>;
  readonly #allowsAll: boolean;

  /** Origins as browsers write them, or `*` for any. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
    this.#allowsAll = origins.includes("*");
  }

  /** Whether at least one origin is allowed. */
  get isOpen(): boolean {
    return this.#origins.size > 0;
  }

  /** Whether an origin may call. A browser sends no origin if the page cannot read the answer, as with images: then only `*` allows the request. */
  allows(origin: string | undefined): boolean {
    return this.#allowsAll || (origin !== undefined && this.#origins.has(origin));
  }
}
