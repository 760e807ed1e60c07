import type { BlockRef, LedgerBlock } from "../../../ports/ledger.ts";
import type { Round } from "./block-reader.ts";

/** Upper bound on the rounds of blocks kept for followers that keep up; slower followers read the chain themselves. */
const roundsMax = 256;
/** Upper bound on the memory of the rounds of blocks kept for followers, in bytes; the newest round is always kept. */
const bytesMax = 4_194_304;
/** How many references (number and hash) to read blocks are kept, to find where a reorg began. Older ones are dropped when there are twice as many. */
const refsMax = 4096;

export class RecentBlocks {
  readonly #rounds: Omit<Round, "logs">[] = [];
  #bytes = 0;
  /** Ascending; empty for chains without reorgs. */
  #refs: BlockRef[] = [];

  get from(): number | undefined {
    return this.#rounds[0]?.from;
  }

  add({ from, blocks, bytes }: Round): void {
    this.#rounds.push({ from, blocks, bytes }); // Without the logs, which nobody reads again.
    this.#bytes += bytes;
    while (this.#rounds.length > roundsMax || (this.#bytes > bytesMax && this.#rounds.length > 1)) {
      this.#bytes -= this.#rounds.shift()?.bytes ?? 0;
    }
  }

  /** Of the blocks from `next` on: those with entries, and the last one; undefined if `next` is not kept. */
  read(next: number): readonly LedgerBlock[] | undefined {
    if ((this.from ?? Number.POSITIVE_INFINITY) > next) return undefined;
    const start = this.#rounds.findLastIndex(({ from }) => from <= next);
    const blocks = this.#rounds.slice(start).flatMap((round) => round.blocks);
    return blocks.filter(
      ({ number, entries }, index) => number >= next && (entries.length > 0 || index === blocks.length - 1),
    );
  }

  /** References to read blocks, newest first. */
  get refs(): readonly BlockRef[] {
    return this.#refs.toReversed();
  }

  addRefs(blocks: readonly BlockRef[]): void {
    for (const { number, hash } of blocks) this.#refs.push({ number, hash });
    if (this.#refs.length > 2 * refsMax) this.#refs = this.#refs.slice(-refsMax);
  }

  findRef(number: number): BlockRef | undefined {
    return this.#refs.findLast((ref) => ref.number === number);
  }

  /** Keeps the references: the blocks are on the chain, but perhaps not with all their logs. */
  forgetRounds(): void {
    this.#rounds.length = 0;
    this.#bytes = 0;
  }

  /** Forgets every round, and the references after `number`. */
  cutBack(number: number): void {
    this.forgetRounds();
    this.#refs = this.#refs.filter((ref) => ref.number <= number);
  }
}
