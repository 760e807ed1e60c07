import { backoffDelayMs } from "../../lib/backoff.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LedgerBlock } from "../../ports/ledger.ts";
import { Wakeup } from "../wakeup.ts";
import type { BlockReader, Round } from "./block-reader.ts";
import { finalNumber } from "./finality.ts";
import { RangeSize } from "./range-size.ts";
import type { Header } from "./rpc.ts";
import { RpcFailure } from "./rpc-failure.ts";

/** Rounds kept for followers that keep up; whoever is behind them reads by range. */
const recentRoundsMax = 256;
/** Encoded events in those rounds, in bytes. */
const recentBytesMax = 8_388_608;
/** Headers that came with notifications, kept until their blocks are read. */
const headsMax = 64;
const retryLimits = { delayMsMin: 50, delayMsMax: 5000 };

export interface BlockFeedOptions {
  readonly reader: BlockReader;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told of every round of new blocks, once, ascending, without a gap. */
  readonly onRound: (round: Round) => void;
}

/** Reads every new final block once and lets any number of followers have it; older blocks are read for each follower. */
export class BlockFeed {
  readonly #options: BlockFeedOptions;
  readonly #stopping = new AbortController();
  readonly #changed = new Wakeup();
  readonly #heads = new Map<number, Header>();
  readonly #recent: Round[] = [];
  readonly #size = new RangeSize();
  #recentBytes = 0;
  #final = -1;
  /** The newest block that was read. */
  #tail = -1;
  #running: Promise<void> | undefined;

  constructor(options: BlockFeedOptions) {
    this.#options = options;
  }

  /** Begins after `head`; blocks up to it are history. */
  start(head: Header): void {
    this.#final = finalNumber(head);
    this.#tail = this.#final;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** The newest block that has been read, so what happened up to it is known. */
  get tail(): number {
    return this.#tail;
  }

  onHead(head: Header): void {
    this.#heads.set(head.number, head);
    const [oldest] = this.#heads.keys();
    if (this.#heads.size > headsMax && oldest !== undefined) this.#heads.delete(oldest);
    this.#final = Math.max(this.#final, finalNumber(head));
    this.#changed.wake();
  }

  async *follow(after: number, signal: AbortSignal): AsyncGenerator<readonly LedgerBlock[]> {
    const ended = AbortSignal.any([signal, this.#stopping.signal]);
    const size = new RangeSize();
    let next = after + 1;
    while (!ended.aborted) {
      const blocks = next > this.#tail ? [] : (this.#recentFrom(next) ?? (await this.#older(next, { size, ended })));
      const last = blocks.at(-1);
      if (last === undefined) await this.#changed.wait(ended);
      else {
        yield blocks;
        next = last.number + 1;
      }
    }
  }

  async #run(): Promise<void> {
    const ended = this.#stopping.signal;
    while (!ended.aborted) {
      if (this.#final <= this.#tail) {
        await this.#changed.wait(ended);
        continue;
      }
      const round = await this.#read({ from: this.#tail + 1, to: this.#final }, { size: this.#size, ended });
      if (round !== undefined) this.#take(round);
    }
  }

  #take(round: Round): void {
    this.#tail = round.blocks.at(-1)?.number ?? this.#tail;
    for (const number of this.#heads.keys()) if (number <= this.#tail) this.#heads.delete(number);
    this.#recent.push(round);
    this.#recentBytes += round.bytes;
    while (this.#recent.length > recentRoundsMax || (this.#recentBytes > recentBytesMax && this.#recent.length > 1)) {
      this.#recentBytes -= this.#recent.shift()?.bytes ?? 0;
    }
    this.#options.onRound(round);
    this.#changed.wake();
  }

  /** Recent blocks from `next` on; undefined when they reach back less far. */
  #recentFrom(next: number): readonly LedgerBlock[] | undefined {
    if ((this.#recent[0]?.from ?? Number.POSITIVE_INFINITY) > next) return undefined;
    const start = this.#recent.findLastIndex(({ from }) => from <= next);
    const blocks = this.#recent.slice(start).flatMap((round) => round.blocks);
    return blocks.filter(
      ({ number, entries }, index) => number >= next && (entries.length > 0 || index === blocks.length - 1),
    );
  }

  async #older(next: number, options: ReadOptions): Promise<readonly LedgerBlock[]> {
    const recentFrom = this.#recent[0]?.from ?? this.#tail + 1;
    const round = await this.#read({ from: next, to: recentFrom - 1 }, options);
    return round?.blocks ?? [];
  }

  /** Reads from the beginning of the range as much as the endpoint takes; tries until it succeeds or is ended. */
  async #read(range: { from: number; to: number }, { size, ended }: ReadOptions): Promise<Round | undefined> {
    for (let attempt = 1; !ended.aborted; attempt += 1) {
      const to = Math.min(range.to, range.from + size.blocks - 1);
      try {
        const round = await this.#options.reader.read({ from: range.from, to }, this.#heads);
        size.onAnswer(round.bytes);
        return round;
      } catch (error) {
        await this.#recover(error, { attempt, size, ended });
      }
    }
    return undefined;
  }

  async #recover(error: unknown, { attempt, size, ended }: ReadOptions & { readonly attempt: number }): Promise<void> {
    if (error instanceof RpcFailure && error.kind === "range-refused" && size.onRefusal()) return;
    if (ended.aborted) return;
    this.#heads.clear();
    this.#options.logger.warn("blocks not read, trying again", { attempt, error });
    const pause = new Wakeup();
    const cancel = this.#options.clock.after(backoffDelayMs(attempt, { ...retryLimits, fraction: 1 }), () =>
      pause.wake(),
    );
    await pause.wait(ended);
    cancel();
  }
}

interface ReadOptions {
  readonly size: RangeSize;
  readonly ended: AbortSignal;
}
