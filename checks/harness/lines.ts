/** A report of a client that runs elsewhere: in another process, or in a page. */
export type Line = { readonly what: string } & Readonly<Record<string, unknown>>;

/** The reports of one client, in the order of their arrival. */
export class Lines {
  readonly #lines: Line[] = [];
  readonly #waiting = new Set<() => void>();
  #isEnded = false;

  push(line: Line): void {
    this.#lines.push(line);
    this.#wake();
  }

  /** Marks the end: no more reports come. */
  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  /** Waits for a report of this kind and removes it; reports of other kinds stay. @throws Error if the client reports an error instead, or has ended. */
  async next(what: string): Promise<Line> {
    for (;;) {
      const line = this.#take(what);
      if (line !== undefined) return line;
      const error = this.#take("error");
      if (error !== undefined) throw new Error(`the client failed before ${what}: ${JSON.stringify(error)}`);
      if (this.#isEnded) throw new Error(`the client ended before it said ${what}`);
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  #take(what: string): Line | undefined {
    const index = this.#lines.findIndex((line) => line.what === what);
    return index < 0 ? undefined : this.#lines.splice(index, 1)[0];
  }
}
