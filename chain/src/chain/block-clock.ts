import { uptime } from "node:os";
import { BLOCK_TIME_STEP_MS_MAX, BLOCK_TIME_STEP_WAIT_MS } from "../limits.ts";

/** The clocks of the machine, in milliseconds. */
export interface Clocks {
  /** Since the epoch; may be set, forward and back. */
  timeOfDay(): number;
  /** Since a fixed moment, even while the machine is suspended; never set. */
  monotonic(): number;
}

/** A reading of both clocks at one moment. */
interface Reading {
  readonly timeOfDay: number;
  readonly monotonic: number;
}

/** The real clocks. `performance.now()` stops while the machine is suspended: with it, the clock of a resumed machine would seem to have been set. */
export const machineClocks: Clocks = { timeOfDay: () => Date.now(), monotonic: () => uptime() * 1_000 };

/**
 * The time for the next block. A block's time never goes back: one block made while the clock is wrongly set ten years ahead would keep all later blocks there.
 * So a large step forward counts only after it has lasted BLOCK_TIME_STEP_WAIT_MS. A process that has just started believes the clock.
 */
export class BlockClock {
  readonly #clocks: Clocks;
  #agreed: Reading;
  /** The first reading after a large step, as long as the step does not count yet. */
  #stepped: Reading | undefined;

  constructor(clocks = machineClocks) {
    this.#clocks = clocks;
    this.#agreed = this.#read();
  }

  /** Milliseconds since the epoch. */
  now(): number {
    const reading = this.#read();
    if (this.#isBelieved(reading)) {
      this.#agreed = reading;
      this.#stepped = undefined;
    }
    return continueTo(reading, this.#agreed);
  }

  #isBelieved(reading: Reading): boolean {
    if (stepBetween(this.#agreed, reading) <= BLOCK_TIME_STEP_MS_MAX) return true;
    const stepped = this.#stepped;
    if (stepped === undefined || Math.abs(stepBetween(stepped, reading)) > BLOCK_TIME_STEP_MS_MAX) {
      this.#stepped = reading;
      return false;
    }
    return reading.monotonic - stepped.monotonic >= BLOCK_TIME_STEP_WAIT_MS;
  }

  #read(): Reading {
    return { timeOfDay: this.#clocks.timeOfDay(), monotonic: this.#clocks.monotonic() };
  }
}

/** By how much the time of day was set between two readings. */
function stepBetween(before: Reading, after: Reading): number {
  return after.timeOfDay - continueTo(after, before);
}

/** The time of day that a later reading would have if nobody had set the clock since the earlier one. */
function continueTo({ monotonic }: Reading, earlier: Reading): number {
  return earlier.timeOfDay + monotonic - earlier.monotonic;
}
