import { backoffDelayMs } from "../../../lib/backoff.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import type { StoreError } from "../store-error.ts";
import { probeDelayMsMax, probeDelayMsMin } from "./limits.ts";

interface OutageOptions {
  readonly probe: () => Promise<StoreError | undefined>;
  readonly waitMsMax: number;
}

/**
 * A time in which the server is not reached. One probe at a time looks for its return, however many callers wait. They wait for the first
 * `waitMsMax`, which a restart of the server fits in by default, and are then refused at once.
 */
export class Outage {
  readonly #over = createDeferred<void>();
  #isPatient = true;
  #isEnded = false;
  #tries = 0;
  #failure: StoreError;
  #timer: NodeJS.Timeout | undefined;
  readonly #patience: NodeJS.Timeout;
  readonly #probe: () => Promise<StoreError | undefined>;

  /** `probe` answers why the server cannot be reached, or nothing when it can. */
  constructor(failure: StoreError, { probe, waitMsMax }: OutageOptions) {
    this.#failure = failure;
    this.#probe = probe;
    this.#over.promise.catch(() => {}); // Nobody may be waiting.
    this.#patience = setTimeout(() => {
      this.#isPatient = false;
      this.#over.reject(this.#failure);
    }, waitMsMax);
    this.#probeLater();
  }

  /** Why the server was not reached the last time. */
  get failure(): StoreError {
    return this.#failure;
  }

  /** Answers when the server is reached again. @throws StoreError when it is not in time. */
  async wait(): Promise<void> {
    if (!this.#isPatient) throw this.#failure;
    return this.#over.promise;
  }

  /** Ends it, also without the server's return. */
  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#patience);
    clearTimeout(this.#timer);
    this.#over.resolve();
  }

  #probeLater(): void {
    this.#tries += 1;
    const bounds = { delayMsMin: probeDelayMsMin, delayMsMax: probeDelayMsMax, fraction: Math.random() };
    this.#timer = setTimeout(() => void this.#tryOnce(), backoffDelayMs(this.#tries, bounds));
  }

  async #tryOnce(): Promise<void> {
    const failure = await this.#probe();
    if (this.#isEnded) return;
    if (failure === undefined) return this.end();
    // That no connection was free says nothing about the server.
    if (failure.fault !== "exhausted") this.#failure = failure;
    this.#probeLater();
  }
}
