interface Step {
  readonly close: () => Promise<void> | void;
  readonly what: string;
}

/** Open resources, closed in reverse order. */
export class CleanupStack {
  readonly #steps: Step[] = [];
  readonly #failures: unknown[] = [];
  #closing: Promise<void> | undefined;
  /** The name of the resource that is closing. */
  #current = "";

  /** `what` names the resource in the error if it does not close in time. */
  add(close: Step["close"], what: string): void {
    this.#steps.push({ close, what });
  }

  /**
   * Closes everything, even after a failure; then throws the first failure. If `signal` aborts, the resource that is closing counts as failed; the others begin
   * to close, and this call waits for none of them. A second call waits for the first.
   */
  closeAll(signal?: AbortSignal): Promise<void> {
    this.#closing ??= this.#closeUnlessAborted(signal);
    return this.#closing;
  }

  async #closeUnlessAborted(signal: AbortSignal | undefined): Promise<void> {
    const closed = this.#close().then(() => true);
    const isClosed = await (signal === undefined ? closed : Promise.race([closed, whenAborted(signal)]));
    if (!isClosed) this.#failures.push(new Error(`not stopped in time: ${this.#current}`));
    while (this.#steps.length > 0) void this.#close();
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  /** Never rejects. */
  async #close(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      this.#current = step.what;
      try {
        await step.close();
      } catch (error) {
        this.#failures.push(error);
      }
    }
  }
}

function whenAborted(signal: AbortSignal): Promise<false> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(false);
    else signal.addEventListener("abort", () => resolve(false), { once: true });
  });
}
