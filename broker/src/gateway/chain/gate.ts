/** Call it when the admitted call has ended, with the milliseconds for which the call worked, without its waits elsewhere. */
export type Leave = (workedMs?: number) => void;

export interface GateOptions {
  /** How many calls run at once. */
  readonly runningMax: number;
  /** How many calls wait; further ones are refused. */
  readonly waitingMax: number;
  /** A call that has waited longer is refused when its turn comes. */
  readonly waitTimeoutMs: number;
  /** If a call worked for at least this long, its place stays empty for the same time again after it ends. If undefined, there are no such pauses. */
  readonly pauseFromMs?: number;
}

interface Waiting {
  readonly since: number;
  readonly resolve: (leave: Leave | undefined) => void;
}

/** Limits the calls that run at once, and admits waiting calls in order. */
export class Gate {
  readonly #options: GateOptions;
  readonly #waiting: Waiting[] = [];
  #running = 0;
  #isClosed = false;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Waits until the call may run. Returns undefined if too many calls wait, if the wait was too long, or if the gate is closed. */
  enter(): Promise<Leave | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined);
    if (this.#running < this.#options.runningMax) return Promise.resolve(this.#admit());
    if (this.#waiting.length >= this.#options.waitingMax) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#waiting.push({ since: performance.now(), resolve }));
  }

  /** Refuses all further calls, and all that wait. */
  close(): void {
    this.#isClosed = true;
    for (const { resolve } of this.#waiting.splice(0)) resolve(undefined);
  }

  #admit(): Leave {
    this.#running += 1;
    return (workedMs = 0) => this.#pause(workedMs);
  }

  #pause(workedMs: number): void {
    if (workedMs < (this.#options.pauseFromMs ?? Number.POSITIVE_INFINITY)) this.#free();
    else setTimeout(() => this.#free(), workedMs).unref();
  }

  #free(): void {
    this.#running -= 1;
    const latest = performance.now() - this.#options.waitTimeoutMs;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      if (next.since >= latest) return next.resolve(this.#admit());
      next.resolve(undefined);
    }
  }
}
