import { BrokerError } from "@stele/wire";
import type { Clock } from "../../ports/clock.ts";
import type { Group } from "../group.ts";
import { Deadline } from "../time.ts";

/** How long the chain may take to give the times of blocks. */
const blockTimesTimeoutMs = 5_000;

/** The times of blocks, which the index does not have: the chain gives them. */
export class BlockTimes {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** In milliseconds since the epoch; undefined if the chain does not give it in time. */
  async find({ ledger }: Group, blockNumber: number): Promise<number | undefined> {
    using deadline = new Deadline(this.#clock, blockTimesTimeoutMs);
    try {
      return (await ledger.readBlock(blockNumber, deadline.signal))?.timestamp;
    } catch {
      return undefined;
    }
  }

  /** The first block, up to `head`, that was made at a time or later; the one after `head` if none was. @throws BrokerError 200205. */
  async findBlockAt(group: Group, time: number, head: number): Promise<number> {
    let [first, end] = [0, head + 1];
    while (first < end) {
      const middle = Math.floor((first + end) / 2);
      if ((await this.#get(group, middle)) < time) first = middle + 1;
      else end = middle;
    }
    return first;
  }

  async #get(group: Group, blockNumber: number): Promise<number> {
    const time = await this.find(group, blockNumber);
    if (time !== undefined) return time;
    throw new BrokerError("chainUnreachable", { details: `the chain does not give the time of block ${blockNumber}` });
  }
}
