/** Open resources, closed in reverse order. */
export class Closers {
  readonly #closers: (() => Promise<void> | void)[] = [];
  #closing: Promise<void> | undefined;

  add(close: () => Promise<void> | void): void {
    this.#closers.push(close);
  }

  /** Closes everything, even after a failure; then throws the first failure. A second call waits for the first. */
  closeAll(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
