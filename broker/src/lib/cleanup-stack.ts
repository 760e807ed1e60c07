/** Open resources, closed in reverse order. */
export class CleanupStack {
  readonly #cleanup: (() => Promise<void> | void)[] = [];
  #closing: Promise<void> | undefined;

  add(close: () => Promise<void> | void): void {
    this.#cleanup.push(close);
  }

  /** Closes everything, even after a failure; then throws the first failure. A second call waits for the first. */
  closeAll(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#cleanup.pop(); close !== undefined; close = this.#cleanup.pop()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
