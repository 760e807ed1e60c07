/** Lets so many tasks run at once; the others wait, and go in the order in which they came. */
export class Turnstile {
  #free: number;
  /** Those that wait, each by what lets it go. */
  readonly #waiting = new Set<(isMine: boolean) => void>();

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  /** What `task` comes to; undefined, and it is never begun, when `signal` aborts before its turn. */
  async run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    if (this.#free > 0) this.#free -= 1;
    else if (!(await this.#wait(signal))) return undefined;
    try {
      return await task();
    } finally {
      this.#giveBack();
    }
  }

  #wait(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const abort = (): void => settle(false);
      const settle = (isMine: boolean): void => {
        this.#waiting.delete(settle);
        signal.removeEventListener("abort", abort);
        resolve(isMine);
      };
      this.#waiting.add(settle);
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  /** The place goes to who waits longest, and is never free in between. */
  #giveBack(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free += 1;
    else next(true);
  }
}
