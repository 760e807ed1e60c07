/** Which foreign origins an operator lets in. */
export class OriginRule {
  readonly #origins: ReadonlySet<string>;
  readonly #allowsAll: boolean;

  /** Origins as browsers write them, or `*` for any. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
    this.#allowsAll = origins.includes("*");
  }

  /** Whether there is any. */
  get isOpen(): boolean {
    return this.#origins.size > 0;
  }

  /** A browser leaves the origin out where the answer stays hidden from the page, as with images: then only `*` covers it. */
  allows(origin: string | undefined): boolean {
    return this.#allowsAll || (origin !== undefined && this.#origins.has(origin));
  }
}
