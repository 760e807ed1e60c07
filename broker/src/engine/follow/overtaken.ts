import type { Clock } from "../../ports/clock.ts";
import type { Ledger } from "../../ports/ledger.ts";
import type { EngineLimits } from "../limits.ts";
import type { IndexProgress } from "../index-progress.ts";
import { findFinal } from "./stall-detector.ts";

/** How long the index may lack a block that this node's chain names and does not give, in milliseconds. Publishes wait 30 s for the index. */
const stuckAfterMs = 12_000;

export interface OvertakenOptions {
  readonly ledger: Ledger;
  readonly progress: IndexProgress;
  readonly clock: Clock;
  readonly limits: EngineLimits;
}

/** Decides whether the follower must give way to a node whose chain is ahead. */
export class Overtaken {
  readonly #options: OvertakenOptions;
  /** The highest reported block, the index at that time, and since when it has been there. */
  #heard: { readonly blockNumber: number; readonly index: number; readonly since: number } | undefined;

  constructor(options: OvertakenOptions) {
    this.#options = options;
  }

  /** Another node reports that its chain has had this block for a while. Reports of indexed blocks are late, and ignored. */
  hear(blockNumber: number): void {
    const { progress, clock } = this.#options;
    const index = progress.blockNumber;
    if (blockNumber <= Math.max(index, this.#heard?.blockNumber ?? -1)) return;
    this.#heard = { index, since: clock.monotonic(), ...this.#heard, blockNumber };
  }

  /** Whether another node should follow: the index stands still, and this node's chain lacks the block or does not give it. */
  async look(signal: AbortSignal): Promise<boolean> {
    const { progress, clock } = this.#options;
    const heard = this.#heard;
    const index = progress.blockNumber;
    if (heard === undefined) return false;
    if (index !== heard.index) {
      this.#heard = index >= heard.blockNumber ? undefined : { ...heard, index, since: clock.monotonic() };
      return false;
    }
    if (clock.monotonic() - heard.since >= stuckAfterMs) return true;
    const final = await findFinal(this.#options, signal);
    return final < heard.blockNumber && progress.blockNumber === index && !signal.aborted;
  }
}
