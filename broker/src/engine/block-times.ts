import { BrokerError } from "@stele/wire";
import { findFirstTrue } from "../lib/first-true.ts";
import type { CancelSignal } from "../lib/cancellation.ts";
import { SharedCalls } from "../lib/shared-calls.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ledger } from "../ports/ledger.ts";
import type { IndexProgress } from "./index-progress.ts";
import { Deadline } from "./time.ts";

/** How long the chain may take to give the time of a block, in milliseconds. */
const blockTimeTimeoutMs = 5_000;

/** How long {@link BlockTimes.findBlockAt} may take, in milliseconds. In a chain of a million blocks, it reads about twenty. */
const searchTimeoutMs = 10_000;

export interface BlockTimesParts {
  readonly ledger: Pick<Ledger, "readBlock">;
  readonly clock: Clock;
  readonly progress: Pick<IndexProgress, "version">;
}

/**
 * Reads the times of blocks from the chain: the index does not have them. Concurrent calls for one block share a read, unless the index has rolled back
 * since it began.
 */
export class BlockTimes {
  readonly #parts: BlockTimesParts;
  /** Reads in progress, by version of the progress and block number. */
  readonly #reads = new SharedCalls<string, number | undefined>();

  constructor(parts: BlockTimesParts) {
    this.#parts = parts;
  }

  /** The time of a block in milliseconds since the epoch; undefined if the chain does not answer in time or lacks the block. */
  find(blockNumber: number): Promise<number | undefined> {
    return this.#reads.run(`${this.#parts.progress.version} ${blockNumber}`, () => this.#read(blockNumber));
  }

  /** The time of a block in milliseconds since the epoch. @throws BrokerError 200205 if {@link find} gives none, or `signal` aborts. */
  async get(blockNumber: number, signal: CancelSignal): Promise<number> {
    const time = signal.aborted ? undefined : await untilAborted(this.find(blockNumber), signal);
    if (time !== undefined) return time;
    throw new BrokerError("chainUnreachable", { details: `the chain does not give the time of block ${blockNumber}` });
  }

  /**
   * The first block up to `head` whose time is `time` (milliseconds since the epoch) or later; `head + 1` if there is none. Block times never decrease.
   * The search begins at `head`, as most callers want a recent block. @throws BrokerError 200205.
   */
  async findBlockAt(time: number, head: number, signal?: AbortSignal): Promise<number> {
    using deadline = new Deadline(this.#parts.clock, searchTimeoutMs, signal);
    const isBefore = async (depth: number): Promise<boolean> => (await this.get(head - depth, deadline.signal)) < time;
    return head + 1 - (await findFirstTrue(head + 1, isBefore));
  }

  /** Never rejects. */
  async #read(blockNumber: number): Promise<number | undefined> {
    const { ledger, clock } = this.#parts;
    using deadline = new Deadline(clock, blockTimeTimeoutMs);
    try {
      return (await untilAborted(ledger.readBlock(blockNumber, deadline.signal), deadline.signal))?.timestamp;
    } catch {
      return undefined;
    }
  }
}
