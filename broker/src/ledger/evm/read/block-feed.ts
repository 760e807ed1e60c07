import { backoffDelayMs } from "../../../lib/backoff.ts";
import { findFirstTrue } from "../../../lib/first-true.ts";
import type { Logger } from "../../../lib/logger.ts";
import { pause } from "../../../lib/pause.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { BlockRef, LedgerBlock, LedgerStep, Outage } from "../../../ports/ledger.ts";
import { Wakeup } from "../../wakeup.ts";
import type { BlockReader, Round } from "./block-reader.ts";
import type { FinalityPolicy } from "./finality.ts";
import { RangeSize } from "./range-size.ts";
import { RecentBlocks } from "./recent-blocks.ts";
import type { Header, Rpc } from "../endpoint/rpc.ts";
import { RpcFailure } from "../endpoint/rpc-failure.ts";
import { StalledReading } from "./stalled-reading.ts";

/** Headers that came with notifications, kept until their blocks are read. */
const headsMax = 64;
/** Looks in a row at a chain that is shorter than ours, and another, before it is believed: it may be one node that is behind. */
const shorterLooksMax = 8;
const retryLimits = { delayMsMin: 50, delayMsMax: 5000 };

export interface BlockFeedOptions {
  readonly rpc: Rpc;
  readonly reader: BlockReader;
  readonly finality: FinalityPolicy;
  /** Whether the chain never takes a block back. */
  readonly isFinal: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface FeedListener {
  /** Called with every round of new blocks, once, ascending, without a gap. */
  readonly onRound: (round: Round) => void;
  /** Called when blocks after `blockNumber` are no longer on the chain. New rounds continue after it. */
  readonly onReorganised: (blockNumber: number) => void;
}

/** Reads every new final block once and lets any number of followers have it; older blocks are read for each follower. */
export class BlockFeed {
  readonly #options: BlockFeedOptions;
  readonly #stopping = new AbortController();
  readonly #changed = new Wakeup();
  readonly #headers = new Map<number, Header>();
  readonly #recent = new RecentBlocks();
  readonly #reading: Reading;
  /** Of the feed itself, and of each follower. */
  readonly #readings = new Set<Reading>();
  /** The newest block heard of. */
  #head: Header | undefined;
  /** A head that was not looked at yet. */
  #news: Header | undefined;
  #final = -1;
  /** The newest block that was read; undefined before the first. */
  #tail: BlockRef | undefined;
  #shorterLooks = 0;
  /** Where the last follower began: what an earlier run has read. */
  #begun = -1;
  #running: Promise<void> | undefined;
  readonly #listeners: FeedListener[] = [];

  constructor(options: BlockFeedOptions) {
    this.#options = options;
    this.#reading = this.#createReading(this.#stopping.signal);
  }

  /** Begins after the final block of now; those up to it are history. @throws RpcFailure. */
  async start(head: Header): Promise<void> {
    const { finality, rpc } = this.#options;
    const { number, header } = await finality.finalAt(head);
    this.#head = head;
    this.#final = number;
    if (number >= 0) this.#begin(header ?? (await rpc.header(number)));
    this.#running = this.#run();
  }

  /** Adds a listener; call it before `start`. */
  listen(listener: FeedListener): void {
    this.#listeners.push(listener);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** The newest block that has been read, so what happened up to it is known. */
  get tail(): number {
    return this.#tail?.number ?? -1;
  }

  /** Whether a block that is not above the tail is on the chain that was read. @throws RpcFailure. */
  async isRead(block: BlockRef): Promise<boolean> {
    if (this.#options.isFinal) return true;
    const name = this.#recent.findName(block.number);
    return name === undefined ? this.#options.reader.isOnChain(block) : name.hash === block.hash;
  }

  /** What cannot be read for too long; undefined while there is no such block. */
  get outage(): Outage | undefined {
    for (const { stall } of this.#readings) if (stall.outage !== undefined) return stall.outage;
    return undefined;
  }

  /** Whether the endpoint answers, and has long not given a block: what is published now is not acknowledged in time. */
  get isRefused(): boolean {
    return [...this.#readings].some(({ stall }) => stall.isRefused);
  }

  /** The newest block that was read, by an earlier run as well. */
  get reached(): number {
    return Math.max(this.tail, this.#begun);
  }

  onHead(head: Header): void {
    const isKnown = head.hash === this.#head?.hash && this.#shorterLooks === 0;
    this.#head = head;
    if (isKnown) return;
    this.#news = head;
    this.#headers.set(head.number, head);
    const [oldest] = this.#headers.keys();
    if (this.#headers.size > headsMax && oldest !== undefined) this.#headers.delete(oldest);
    this.#changed.wake();
  }

  async *follow(after: BlockRef | undefined, signal: AbortSignal): AsyncGenerator<LedgerStep> {
    const reading = this.#createReading(AbortSignal.any([signal, this.#stopping.signal]));
    try {
      yield* this.#follow(after, reading);
    } finally {
      this.#readings.delete(reading);
    }
  }

  async *#follow(after: BlockRef | undefined, reading: Reading): AsyncGenerator<LedgerStep> {
    const { ended } = reading;
    let at = after;
    this.#begun = after?.number ?? -1;
    let isHeld = this.#options.isFinal || at === undefined;
    while (!ended.aborted) {
      const result = isHeld ? await this.#next(at, reading) : await this.#hold(at, reading);
      if (reading.fork !== undefined || result === "gone") {
        if (!ended.aborted) yield { kind: "reorganised", common: isHeld ? lower(at, reading.fork?.common) : undefined };
        return;
      }
      if (result === "held") isHeld = true;
      // Nothing may have come between the look and here.
      else if (result === "none" && this.tail <= (at?.number ?? -1)) await this.#changed.wait(ended);
      else if (result === "none") continue;
      else {
        at = result.at(-1);
        yield { kind: "blocks", blocks: result };
      }
    }
  }

  /** Whether a follower begins on this chain; `none` while the chain is not that high. */
  async #hold(at: BlockRef | undefined, reading: Reading): Promise<"held" | "gone" | "none"> {
    if (at === undefined || this.tail < at.number) return "none";
    const name = this.#recent.findName(at.number);
    const isOnChain =
      name === undefined
        ? await this.#try(async () => this.#options.reader.isOnChain(at), { ...reading, from: at.number })
        : name.hash === at.hash;
    return isOnChain === true ? "held" : "gone";
  }

  async #next(at: BlockRef | undefined, reading: Reading): Promise<readonly LedgerBlock[] | "gone" | "none"> {
    const next = (at?.number ?? -1) + 1;
    if (next > this.tail) return "none";
    const recent = this.#recent.read(next);
    if (recent !== undefined) return recent;
    const to = (this.#recent.from ?? this.tail + 1) - 1;
    const round = await this.#try(async () => this.#read(at, { to, size: reading.size }), { ...reading, from: next });
    return round === undefined ? "none" : round === "gone" ? "gone" : round.blocks;
  }

  async #run(): Promise<void> {
    const ended = this.#stopping.signal;
    for (let failures = 0; !ended.aborted; ) {
      if (this.#news === undefined && this.#final <= this.tail) {
        await this.#changed.wait(ended);
        continue;
      }
      try {
        await this.#advance();
        failures = 0;
        this.#reading.stall.done();
      } catch (error) {
        failures += 1;
        this.#news ??= this.#head;
        await this.#recover(error, { ...this.#reading, from: this.tail + 1, attempt: failures });
      }
    }
  }

  /** What is tried again after a failure begins with the newest head: the blocks that were wanted may be no more. */
  async #advance(): Promise<void> {
    const news = this.#news;
    this.#news = undefined;
    if (news !== undefined && (await this.#consider(news)) === "fork") await this.#goBack();
    if (this.#final <= this.tail) return;
    const round = await this.#read(this.#tail, { to: this.#final, size: this.#reading.size });
    if (round === "gone") await this.#goBack();
    else this.#take(round);
  }

  /** Learns what is final now. Answers `fork` when what was final no longer is. */
  async #consider(head: Header): Promise<"fork" | undefined> {
    const { finality, isFinal, rpc } = this.#options;
    const final = await finality.finalAt(head);
    if (isFinal) {
      this.#final = Math.max(this.#final, final.number);
      return undefined;
    }
    this.#final = Math.max(this.tail, final.number);
    const name = this.#recent.findName(final.number);
    if (final.number > this.tail || name === undefined) {
      this.#shorterLooks = 0;
      return undefined;
    }
    const isOurs = (final.header?.hash ?? (await rpc.header(final.number)).hash) === name.hash;
    const isShorter = final.number < this.tail;
    this.#shorterLooks = isShorter && !isOurs ? this.#shorterLooks + 1 : 0;
    return isOurs || (isShorter && this.#shorterLooks < shorterLooksMax) ? undefined : "fork";
  }

  /** Looks for the newest block that is still on the chain, and goes on from there. */
  async #goBack(): Promise<void> {
    const { rpc, logger } = this.#options;
    const names = this.#recent.names;
    const place = await findFirstTrue(names.length, async (index) => {
      const name = names[index];
      return name !== undefined && (await rpc.findHeader(name.number))?.hash === name.hash;
    });
    const ancestor = names[place];
    if (ancestor !== undefined && ancestor.hash === this.#tail?.hash) {
      throw new RpcFailure("refused", "the chain has no child of the newest block that was read", { cause: ancestor });
    }
    logger.info("chain reorganised below what was read", { from: this.tail, to: ancestor?.number });
    if (ancestor === undefined) await this.#beginAnew();
    else this.#begin(ancestor);
    this.#headers.clear();
    this.#shorterLooks = 0;
    for (const reading of this.#readings)
      reading.fork = { common: reading.fork === undefined ? ancestor : lower(ancestor, reading.fork.common) };
    this.#begun = -1;
    this.#final = this.tail;
    this.#news = this.#head;
    for (const { onReorganised } of this.#listeners) onReorganised(ancestor?.number ?? -1);
    this.#changed.wake();
  }

  async #beginAnew(): Promise<void> {
    const { rpc, finality } = this.#options;
    const { number, header } = await finality.finalAt(await rpc.header("latest"));
    const first = number < 0 ? undefined : (header ?? (await rpc.header(number)));
    this.#recent.cutBack(-1);
    this.#tail = undefined;
    if (first !== undefined) this.#begin(first);
  }

  #begin({ number, hash }: BlockRef): void {
    this.#recent.cutBack(number - 1);
    this.#tail = { number, hash };
    if (!this.#options.isFinal) this.#recent.name([this.#tail]);
  }

  #take(round: Round): void {
    const last = round.blocks.at(-1);
    this.#tail = last === undefined ? this.#tail : { number: last.number, hash: last.hash };
    for (const number of this.#headers.keys()) if (number <= this.tail) this.#headers.delete(number);
    this.#recent.add(round);
    if (!this.#options.isFinal) this.#recent.name(round.blocks);
    for (const { onRound } of this.#listeners) onRound(round);
    this.#changed.wake();
  }

  /** Reads from the beginning of the stretch as much as the endpoint takes. */
  async #read(
    after: BlockRef | undefined,
    { to, size }: { readonly to: number; readonly size: RangeSize },
  ): Promise<Round | "gone"> {
    const { reader, isFinal } = this.#options;
    const headers = isFinal ? this.#headers : this.#headersOfChain();
    const stretch = { after, to, blocksMax: size.blocks, headers, head: this.#head?.number ?? -1 };
    const round = isFinal ? await reader.readFinal(stretch) : await reader.read(stretch);
    if (round !== undefined) size.onAnswer(round.bytes);
    return round ?? "gone";
  }

  /** Known headers of the chain that the head is on: one of another chain would link as well, and be read as if it were still there. */
  #headersOfChain(): ReadonlyMap<number, Header> {
    const headers = new Map<number, Header>();
    let header = this.#head;
    while (header !== undefined) {
      headers.set(header.number, header);
      const parent: Header | undefined = this.#headers.get(header.number - 1);
      header = parent?.hash === header.parentHash ? parent : undefined;
    }
    return headers;
  }

  /** Tries until it succeeds; undefined when it is ended first. */
  async #try<T>(task: () => Promise<T>, place: ReadingAt): Promise<T | undefined> {
    for (let attempt = 1; !place.ended.aborted; attempt += 1) {
      try {
        const result = await task();
        place.stall.done();
        return result;
      } catch (error) {
        await this.#recover(error, { ...place, attempt });
      }
    }
    return undefined;
  }

  /** What failed is asked again in a smaller piece: a stranger's logs may be what the endpoint does not give, or not in time. */
  async #recover(
    error: unknown,
    { from, stall, size, ended, attempt }: ReadingAt & { readonly attempt: number },
  ): Promise<void> {
    if (error instanceof RpcFailure && error.kind === "range-refused" && size.onRefusal()) return;
    if (ended.aborted) return;
    size.onLost();
    this.#headers.clear();
    stall.failed(from, error);
    await pause(this.#options.clock, backoffDelayMs(attempt, { ...retryLimits, fraction: 1 }), ended);
  }

  #createReading(ended: AbortSignal): Reading {
    const reading: Reading = {
      size: new RangeSize(),
      stall: new StalledReading(this.#options),
      ended,
      fork: undefined,
    };
    this.#readings.add(reading);
    return reading;
  }
}

/** The feed's own reading of the chain, or a follower's. */
interface Reading {
  readonly size: RangeSize;
  readonly stall: StalledReading;
  readonly ended: AbortSignal;
  /** The last block in common with the chain, after it removed blocks that were read; undefined before. */
  fork: { readonly common: BlockRef | undefined } | undefined;
}

/** A reading that stands before a block. */
interface ReadingAt extends Reading {
  readonly from: number;
}

/** The lower of two blocks of one branch; undefined if either is unknown. */
function lower(one: BlockRef | undefined, other: BlockRef | undefined): BlockRef | undefined {
  if (one === undefined || other === undefined) return undefined;
  return other.number < one.number ? other : one;
}
