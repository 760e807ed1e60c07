import { FifoQueue } from "../../lib/fifo-queue.ts";

/** Admits one caller at a time, first come, first served. */
export class Mutex {
  #isHeld = false;
  readonly #waiting = new FifoQueue<() => void>();

  async acquire(): Promise<void> {
    if (!this.#isHeld) {
      this.#isHeld = true;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  release(): void {
    const next = this.#waiting.take();
    if (next === undefined) this.#isHeld = false;
    else next();
  }
}

export type Speed = "quick" | "slow";

/**
 * Admits one caller at a time. When a slow caller ends, all quick callers that wait by then come first, and then the next slow one. So thousands of slow
 * callers keep a quick one waiting for one or two of them, and quick callers never keep slow ones out.
 */
export class TwoSpeedMutex {
  readonly #waiting: Readonly<Record<Speed, FifoQueue<() => void>>> = { quick: new FifoQueue(), slow: new FifoQueue() };
  #holder: Speed | undefined;
  /** Quick callers that come before the next slow one. */
  #quickAhead = 0;

  async acquire(speed: Speed): Promise<void> {
    if (this.#holder === undefined) this.#holder = speed;
    else await new Promise<void>((resolve) => this.#waiting[speed].add(resolve));
  }

  release(): void {
    const { quick, slow } = this.#waiting;
    if (this.#holder === "slow") this.#quickAhead = quick.size;
    const isQuickNext = this.#quickAhead > 0 || slow.size === 0;
    if (this.#quickAhead > 0) this.#quickAhead -= 1;
    const next = (isQuickNext ? quick : slow).take();
    if (next === undefined) this.#holder = undefined;
    else {
      this.#holder = isQuickNext ? "quick" : "slow";
      next();
    }
  }
}
