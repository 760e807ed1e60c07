import { BrokerError } from "@stele/wire";
import { findFirstTrue } from "../lib/first-true.ts";
import type { CancelSignal } from "../lib/cancellation.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ledger } from "../ports/ledger.ts";
import { Deadline, untilAborted } from "./time.ts";

/** How long the chain may take to give the time of a block, in milliseconds. */
const blockTimeTimeoutMs = 5_000;

/** The same for a search, which reads about twenty of a million blocks. */
const searchTimeoutMs = 10_000;

export interface BlockTimesParts {
  readonly ledger: Pick<Ledger, "readBlock">;
  readonly clock: Clock;
}

/** The times of blocks, which the index does not have: the chain gives them. Whoever asks for one while it is read gets the same. */
export class BlockTimes {
  readonly #parts: BlockTimesParts;
  readonly #reads = new Map<number, Promise<number | undefined>>();

  constructor(parts: BlockTimesParts) {
    this.#parts = parts;
  }

  /** In milliseconds since the epoch; undefined if the chain does not give it in time. */
  find(blockNumber: number): Promise<number | undefined> {
    const known = this.#reads.get(blockNumber);
    if (known !== undefined) return known;
    const read = this.#read(blockNumber).finally(() => this.#reads.delete(blockNumber));
    this.#reads.set(blockNumber, read);
    return read;
  }

  /** In milliseconds since the epoch. @throws BrokerError 200205. */
  async get(blockNumber: number, signal: CancelSignal): Promise<number> {
    const time = signal.aborted ? undefined : await untilAborted(this.find(blockNumber), signal);
    if (time !== undefined) return time;
    throw new BrokerError("chainUnreachable", { details: `the chain does not give the time of block ${blockNumber}` });
  }

  /**
   * The first block, up to `head`, that was made at a time or later; the one after `head` if none was. Times of blocks never go back, and most that are
   * asked for are recent. @throws BrokerError 200205.
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
