import type { BlockRef, LedgerBlock } from "../../../ports/ledger.ts";
import type { Round } from "./block-reader.ts";

/** Rounds kept for followers that keep up; whoever is behind them reads for itself. */
const roundsMax = 256;
/** Memory that those rounds take, in bytes. */
const bytesMax = 8_388_608;
/** Names kept of blocks that were read, to find where a reorganisation began. */
const namesMax = 4096;

/** The blocks that were read last. */
export class RecentBlocks {
  readonly #rounds: Round[] = [];
  #bytes = 0;
  /** Ascending; of a chain that takes blocks back. */
  #names: BlockRef[] = [];

  /** The first block that is kept whole; undefined when there is none. */
  get from(): number | undefined {
    return this.#rounds[0]?.from;
  }

  add(round: Round): void {
    this.#rounds.push(round);
    this.#bytes += round.bytes;
    while (this.#rounds.length > roundsMax || (this.#bytes > bytesMax && this.#rounds.length > 1)) {
      this.#bytes -= this.#rounds.shift()?.bytes ?? 0;
    }
  }

  /** Blocks from `next` on; undefined when they reach back less far. */
  read(next: number): readonly LedgerBlock[] | undefined {
    if ((this.from ?? Number.POSITIVE_INFINITY) > next) return undefined;
    const start = this.#rounds.findLastIndex(({ from }) => from <= next);
    const blocks = this.#rounds.slice(start).flatMap((round) => round.blocks);
    return blocks.filter(
      ({ number, entries }, index) => number >= next && (entries.length > 0 || index === blocks.length - 1),
    );
  }

  /** Names, newest first. */
  get names(): readonly BlockRef[] {
    return this.#names.toReversed();
  }

  name(blocks: readonly BlockRef[]): void {
    for (const { number, hash } of blocks) this.#names.push({ number, hash });
    if (this.#names.length > 2 * namesMax) this.#names = this.#names.slice(-namesMax);
  }

  findName(number: number): BlockRef | undefined {
    return this.#names.findLast((name) => name.number === number);
  }

  /** Forgets every round, and the names after `number`. */
  cutBack(number: number): void {
    this.#rounds.length = 0;
    this.#bytes = 0;
    this.#names = this.#names.filter((name) => name.number <= number);
  }
}
