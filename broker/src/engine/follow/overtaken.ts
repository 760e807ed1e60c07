import { findFinal, type FinalOptions } from "./stall-detector.ts";

/**
 * How long the index may lack a block that this node's chain names but does not return, in milliseconds. Much shorter than the 30 s that publishes wait for
 * the index.
 */
const stuckAfterMs = 12_000;

/** Decides whether this node, the follower, must give the lease to a node whose chain is ahead. */
export class Overtaken {
  readonly #options: FinalOptions;
  /** The newest report, if the index has not advanced since: the block, the newest indexed block, and when the first such report came. */
  #heard: { readonly blockNumber: number; readonly index: number; readonly since: number } | undefined;

  constructor(options: FinalOptions) {
    this.#options = options;
  }

  /** Call it when another node reports that its chain has had a block for a while. It repeats the report while the index does not advance. */
  hear(blockNumber: number): void {
    const { progress, clock } = this.#options;
    const index = progress.blockNumber;
    if (blockNumber <= index) return;
    const since = this.#heard?.index === index ? this.#heard.since : clock.monotonic();
    this.#heard = { blockNumber, index, since };
  }

  /** Whether another node should follow: the index does not advance, and this node's chain does not have the block, does not return it, or does not answer. */
  async check(signal: AbortSignal): Promise<boolean> {
    const { progress, clock } = this.#options;
    if (this.#heard?.index !== progress.blockNumber) this.#heard = undefined;
    const heard = this.#heard;
    if (heard === undefined) return false;
    if (clock.monotonic() - heard.since >= stuckAfterMs) return true;
    const final = await findFinal(this.#options, signal);
    return final < heard.blockNumber && progress.blockNumber === heard.index && !signal.aborted;
  }
}
