import { findFinal, type FinalOptions } from "./stall-detector.ts";

/**
 * How long the index may lack a block that this node's chain names but does not return, in milliseconds. Much shorter than the 30 s that publishes wait for
 * the index.
 */
const stuckAfterMs = 12_000;

/** Decides whether this node, the follower, must give the lease to a node whose chain is ahead. */
export class Overtaken {
  readonly #options: FinalOptions;
  /** The highest reported block, the newest indexed block as last seen, and since when the index has not advanced beyond it. */
  #heard: { readonly blockNumber: number; readonly index: number; readonly since: number } | undefined;

  constructor(options: FinalOptions) {
    this.#options = options;
  }

  /**
   * Call it when another node reports that its chain has had a block for a while. Ignores a block that is already indexed, or not above one that was reported
   * earlier.
   */
  hear(blockNumber: number): void {
    const { progress, clock } = this.#options;
    const index = progress.blockNumber;
    if (blockNumber <= Math.max(index, this.#heard?.blockNumber ?? -1)) return;
    this.#heard = { index, since: clock.monotonic(), ...this.#heard, blockNumber };
  }

  /** Whether another node should follow: the index does not advance, and this node's chain does not have the block, does not return it, or does not answer. */
  async check(signal: AbortSignal): Promise<boolean> {
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
