import type { Clock } from "../../ports/clock.ts";
import type { Ledger } from "../../ports/ledger.ts";
import type { EngineLimits } from "../limits.ts";
import type { IndexProgress } from "../index-progress.ts";
import { findFinal } from "./standstill.ts";

/** How long the index may stand still before a block that another node has, where this node's chain has it too, in milliseconds. */
const stuckAfterMs = 12_000;

export interface OvertakenParts {
  readonly ledger: Ledger;
  readonly progress: IndexProgress;
  readonly clock: Clock;
  readonly limits: EngineLimits;
}

/** What the node that follows makes of what others tell of their chains. */
export class Overtaken {
  readonly #parts: OvertakenParts;
  /** The highest block that was told of, where the index was then, and since when it has been there. */
  #heard: { readonly blockNumber: number; readonly index: number; readonly since: number } | undefined;

  constructor(parts: OvertakenParts) {
    this.#parts = parts;
  }

  /** Another node's chain has had that block for a while. What comes late is of a block that is indexed, and says nothing. */
  hear(blockNumber: number): void {
    const { progress, clock } = this.#parts;
    const index = progress.blockNumber;
    if (blockNumber <= Math.max(index, this.#heard?.blockNumber ?? -1)) return;
    this.#heard = { index, since: clock.monotonic(), ...this.#heard, blockNumber };
  }

  /** Whether another node should follow: the index stands still, and this node's chain lacks the block, or does not give it. */
  async look(signal: AbortSignal): Promise<boolean> {
    const { progress, clock } = this.#parts;
    const heard = this.#heard;
    const index = progress.blockNumber;
    if (heard === undefined) return false;
    if (index !== heard.index) {
      this.#heard = index >= heard.blockNumber ? undefined : { ...heard, index, since: clock.monotonic() };
      return false;
    }
    if (clock.monotonic() - heard.since >= stuckAfterMs) return true;
    const final = await findFinal(this.#parts, signal);
    return final < heard.blockNumber && progress.blockNumber === index && !signal.aborted;
  }
}
