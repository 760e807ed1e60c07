import type { CancelSignal } from "./cancellation.ts";
import type { Timer } from "./pause.ts";
import { RateMeter } from "./rate-meter.ts";

/** Lets callers pass at a rate per second, in the order in which they came. A burst may use the whole allowance of a second at once. */
export class Pace {
  readonly #clock: Timer & { monotonic(): number };
  readonly #meter: RateMeter;
  readonly #waiting = new Set<() => void>();
  #cancel: (() => void) | undefined;

  constructor(perSecond: number, clock: Timer & { monotonic(): number }) {
    this.#clock = clock;
    this.#meter = new RateMeter(perSecond, clock.monotonic());
  }

  /** Returns undefined if the caller may pass now. Else returns a promise that resolves when the caller may pass, or when `signal` aborts. */
  pass(signal: CancelSignal): Promise<void> | undefined {
    if (this.#waiting.size === 0 && this.#meter.waitMs(this.#clock.monotonic()) === 0) {
      this.#meter.take(1);
      return undefined;
    }
    return new Promise((resolve) => {
      const pass = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.delete(pass);
        pass();
      };
      if (signal.aborted) return resolve();
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.add(pass);
      this.#waitForNext();
    });
  }

  /** Whether nobody waits, and a full burst may pass. */
  get isIdle(): boolean {
    return this.#waiting.size === 0 && this.#meter.isFull(this.#clock.monotonic());
  }

  #waitForNext(): void {
    if (this.#cancel !== undefined || this.#waiting.size === 0) return;
    this.#cancel = this.#clock.after(this.#meter.waitMs(this.#clock.monotonic()), () => {
      this.#cancel = undefined;
      this.#passSome();
      this.#waitForNext();
    });
  }

  #passSome(): void {
    const now = this.#clock.monotonic();
    for (const pass of this.#waiting) {
      if (this.#meter.waitMs(now) > 0) return;
      this.#meter.take(1);
      this.#waiting.delete(pass);
      pass();
    }
  }
}
