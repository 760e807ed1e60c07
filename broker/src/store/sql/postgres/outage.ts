import { backoffDelayMs } from "../../../lib/backoff.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import type { StoreError } from "../store-error.ts";
import { probeDelayMsMax, probeDelayMsMin } from "./limits.ts";

interface OutageOptions {
  readonly probe: () => Promise<StoreError | undefined>;
  readonly waitMsMax: number;
}

/**
 * A time during which the pool cannot reach the server. One probe at a time checks for all callers whether the server is back. Callers wait during the
 * first `waitMsMax`, by default long enough for a restart of the server; later calls fail at once.
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

  /** `probe` returns why the server cannot be reached, or undefined if it can. */
  constructor(failure: StoreError, { probe, waitMsMax }: OutageOptions) {
    this.#failure = failure;
    this.#probe = probe;
    this.#over.promise.catch(() => {}); // Perhaps nobody waits; then the rejection must not count as unhandled.
    this.#patience = setTimeout(() => {
      this.#isPatient = false;
      this.#over.reject(this.#failure);
    }, waitMsMax);
    this.#probeLater();
  }

  /** Why the pool cannot reach the server: the failure that began the outage, or that of the newest probe that tried a connection. */
  get failure(): StoreError {
    return this.#failure;
  }

  /** Resolves when the server is back. @throws StoreError if it is not back in time. */
  async wait(): Promise<void> {
    if (!this.#isPatient) throw this.#failure;
    return this.#over.promise;
  }

  /** Ends the outage, even if the server is not back. */
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
    // A lack of free connections says nothing about the server.
    if (failure.fault !== "exhausted") this.#failure = failure;
    this.#probeLater();
  }
}
