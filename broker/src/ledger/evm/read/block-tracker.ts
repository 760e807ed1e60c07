import { backoffDelayMs } from "../../../lib/backoff.ts";
import { findFirstTrue } from "../../../lib/first-true.ts";
import type { Logger } from "../../../lib/logger.ts";
import { pause } from "../../../lib/pause.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Hash } from "../../../domain/topic.ts";
import type { BlockRef, LedgerBlock, LedgerStep, Outage } from "../../../ports/ledger.ts";
import { Wakeup } from "../../../lib/wakeup.ts";
import type { BlockReader, Round } from "./block-reader.ts";
import type { FinalBlock, FinalityPolicy } from "./finality.ts";
import { RangeSize } from "./range-size.ts";
import { RecentBlocks } from "./recent-blocks.ts";
import type { Header, Rpc } from "../endpoint/rpc.ts";
import { RpcFailure } from "../endpoint/rpc-failure.ts";
import { behind } from "../registry/settle-registry.ts";
import { lower, type Reading, type ReadingAt } from "./reading.ts";
import { StalledReading } from "./stalled-reading.ts";

/** Consecutive polls that must show a shorter fork before we accept it; one poll may hit a lagging chain node. */
const shorterPollsMax = 8;
/** Pause before the tracker asks again which block is final while no newer head arrives, in milliseconds. Longer than a block takes on most chains. */
const finalAgainMs = 15_000;
const retryLimits = { delayMsMin: 50, delayMsMax: 5000 };

export interface BlockTrackerOptions {
  readonly rpc: Rpc;
  readonly reader: BlockReader;
  readonly finality: FinalityPolicy;
  /** The hash of the chain's first block. */
  readonly genesisHash: Hash;
  /** Whether the chain never has reorgs. */
  readonly isFinal: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface TrackerListener {
  /**
   * Called with every round of new blocks, once, ascending, without a gap. Not called for blocks up to the one after which the tracker begins: the sender
   * finds its transactions in them when it next looks them up.
   */
  readonly onRound: (round: Round) => void;
  /**
   * Called when blocks after `blockNumber` are no longer on the chain. New rounds continue after this block. The number is -1 if
   * no common block is known; then new rounds continue after the newest final block.
   */
  readonly onReorganised: (blockNumber: number) => void;
  /** Called when the newest heads are those of another chain. */
  readonly onForeign: () => void;
}

/** Reads every new final block once for all followers; older blocks are read for each follower. */
export class BlockTracker {
  readonly #options: BlockTrackerOptions;
  readonly #stopping = new AbortController();
  readonly #changed = new Wakeup();
  readonly #recent = new RecentBlocks();
  readonly #reading: Reading;
  /** The state of the tracker's own reading, and of each follower's. */
  readonly #readings = new Set<Reading>();
  /** The newest known block. */
  #head: Header | undefined;
  /** A head that is not processed yet. */
  #pendingHead: Header | undefined;
  #final = -1;
  /** The newest block that the tracker read; undefined before the first. */
  #tail: BlockRef | undefined;
  #shorterPolls = 0;
  /** The block after which the newest follower began: an earlier run of the broker had read up to it. */
  #followedFrom = -1;
  #shortSince: number | undefined;
  #running: Promise<void> | undefined;
  readonly #listeners: TrackerListener[] = [];

  constructor(options: BlockTrackerOptions) {
    this.#options = options;
    this.#reading = this.#createReading(this.#stopping.signal);
  }

  /** Starts after the current final block, or after the first one if there is none yet; followers read earlier ones themselves. @throws RpcFailure. */
  async start(head: Header): Promise<void> {
    this.#head = head;
    this.#begin(await this.#options.finality.findFinal(head));
    this.#running = this.#run();
  }

  /** Adds a listener; call it before `start`. */
  listen(listener: TrackerListener): void {
    this.#listeners.push(listener);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** The newest block that the tracker read; -1 before the first. */
  get tail(): number {
    return this.#tail?.number ?? -1;
  }

  /** Whether a block up to the tail is on the branch that the tracker read. @throws RpcFailure. */
  async isRead(block: BlockRef): Promise<boolean> {
    if (this.#options.isFinal) return true;
    const read = this.#recent.findRef(block.number);
    return read === undefined ? this.#options.reader.isOnChain(block) : read.hash === block.hash;
  }

  /** Why a block has been unreadable for too long; undefined if none has. */
  get outage(): Outage | undefined {
    for (const { stall } of this.#readings) if (stall.outage !== undefined) return stall.outage;
    return undefined;
  }

  /** Whether the endpoint answers but has long refused a block: a publish now would time out. */
  get isRefused(): boolean {
    return [...this.#readings].some(({ stall }) => stall.isRefused);
  }

  /**
   * The outage while the chain ends before a block that this or an earlier run read: its chain node lags, or lost its state. Undefined otherwise.
   * Called for each head, since the first call in an outage records when the outage began.
   */
  findShortage(): Outage | undefined {
    const reached = Math.max(this.tail, this.#followedFrom);
    const head = this.#head?.number ?? reached;
    if (head >= reached) {
      this.#shortSince = undefined;
      return undefined;
    }
    this.#shortSince ??= this.#options.clock.monotonic();
    return { reason: behind(head, reached), since: this.#shortSince };
  }

  onHead(head: Header): void {
    const isKnown = head.hash === this.#head?.hash && this.#shorterPolls === 0;
    this.#head = head;
    this.findShortage();
    if (isKnown) return;
    this.#pendingHead = head;
    this.#changed.wake();
  }

  /** Followers that begin after this call read the blocks up to the tail from the chain. */
  forgetBlocks(): void {
    this.#recent.forgetRounds();
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
    this.#followedFrom = after?.number ?? -1;
    let isOnBranch = this.#options.isFinal || at === undefined;
    while (!ended.aborted) {
      const result = isOnBranch ? await this.#next(at, reading) : await this.#checkStart(at, reading);
      if (reading.fork !== undefined || result === "gone") {
        if (!ended.aborted)
          yield { kind: "reorganised", common: isOnBranch ? lower(at, reading.fork?.common) : undefined };
        return;
      }
      if (result === "on-branch") isOnBranch = true;
      // Wait only if no block arrived meanwhile.
      else if (result === "none" && this.tail <= (at?.number ?? -1)) await this.#changed.wait(ended);
      else if (result === "none") continue;
      else {
        at = result.at(-1);
        yield { kind: "blocks", blocks: result };
      }
    }
  }

  /** Whether `at`, the block after which a follower begins, is on the branch that the tracker read; `none` while the tracker has not read that far. */
  async #checkStart(at: BlockRef | undefined, reading: Reading): Promise<"on-branch" | "gone" | "none"> {
    if (at === undefined || this.tail < at.number) return "none";
    const read = this.#recent.findRef(at.number);
    const isOnChain =
      read === undefined
        ? await this.#try(async () => this.#options.reader.isOnChain(at), { ...reading, from: at.number })
        : read.hash === at.hash;
    return isOnChain === true ? "on-branch" : "gone";
  }

  async #next(at: BlockRef | undefined, reading: Reading): Promise<readonly LedgerBlock[] | "gone" | "none"> {
    const next = (at?.number ?? -1) + 1;
    if (next > this.tail) return "none";
    const recent = this.#recent.read(next);
    if (recent !== undefined) return recent;
    const to = (this.#recent.from ?? this.tail + 1) - 1;
    const round = await this.#try(async () => this.#read(at, { ...reading, to }), { ...reading, from: next });
    return round === undefined ? "none" : round === "gone" ? "gone" : round.blocks;
  }

  async #run(): Promise<void> {
    const ended = this.#stopping.signal;
    for (let failures = 0; !ended.aborted; ) {
      if (this.#pendingHead === undefined && this.#final <= this.tail) {
        await this.#waitForHead(ended);
        continue;
      }
      try {
        await this.#advance(failures > 0);
        failures = 0;
        this.#reading.stall.done();
      } catch (error) {
        failures += 1;
        // Retry from the newest head: the blocks of the failed attempt may be gone.
        this.#pendingHead ??= this.#head;
        await this.#recover(error, { ...this.#reading, from: this.tail + 1, attempt: failures });
      }
    }
  }

  /** Waits for a head. Takes the newest one again after a while if it may have become final: chains without transactions may make no newer one for hours. */
  async #waitForHead(ended: AbortSignal): Promise<void> {
    const { clock, finality } = this.#options;
    const takeAgain = (): void => {
      this.#pendingHead ??= this.#head;
      this.#changed.wake();
    };
    const cancel = finality.isTagged ? clock.after(finalAgainMs, takeAgain) : undefined;
    await this.#changed.wait(ended);
    cancel?.();
  }

  /** Processes the newest head, and reads one round of blocks. */
  async #advance(isRetry: boolean): Promise<void> {
    const head = this.#pendingHead;
    this.#pendingHead = undefined;
    if (this.#tail === undefined && head !== undefined) {
      this.#begin(await this.#options.finality.findFinal(head));
      this.#changed.wake();
      return;
    }
    const final = head && (await this.#options.finality.finalAt(head));
    if (final !== undefined && (await this.#consider(final)) === "fork") await this.#rollBack();
    if (this.#final <= this.tail) return;
    // After a failure the head's block may be gone, so the reader asks for the header again.
    const header = isRetry ? undefined : final?.header;
    const round = await this.#read(this.#tail, { to: this.#final, header, ...this.#reading });
    if (round === "gone") await this.#rollBack();
    else this.#take(round);
  }

  /** Updates the final block. Returns `fork` if a block that was final is no longer on the chain; a shorter chain must show that in several polls. */
  async #consider(final: FinalBlock): Promise<"fork" | undefined> {
    const { isFinal, rpc } = this.#options;
    if (isFinal) {
      this.#final = Math.max(this.#final, final.number);
      return undefined;
    }
    this.#final = Math.max(this.tail, final.number);
    const read = this.#recent.findRef(final.number);
    if (final.number > this.tail || read === undefined) {
      this.#shorterPolls = 0;
      return undefined;
    }
    const isOurs = (final.header?.hash ?? (await rpc.header(final.number)).hash) === read.hash;
    const isShorter = final.number < this.tail;
    this.#shorterPolls = isShorter && !isOurs ? this.#shorterPolls + 1 : 0;
    return isOurs || (isShorter && this.#shorterPolls < shorterPollsMax) ? undefined : "fork";
  }

  /** Rolls back to the newest block that is still on the chain, and continues from there. */
  async #rollBack(): Promise<void> {
    const { rpc, finality, logger } = this.#options;
    const { refs } = this.#recent;
    const isOnChain = async (ref: BlockRef | undefined): Promise<boolean> =>
      ref !== undefined && (await rpc.findHeader(ref.number))?.hash === ref.hash;
    const place = await findFirstTrue(refs.length, async (index) => isOnChain(refs[index]));
    const ancestor = refs[place];
    if (ancestor !== undefined && ancestor.hash === this.#tail?.hash) {
      throw new RpcFailure("refused", "the chain has no child of the newest block that was read", {
        cause: ancestor,
      });
    }
    // The answers may be those of two chains, or of chain nodes that disagree.
    const above = refs[place - 1];
    if (await isOnChain(above))
      throw new RpcFailure("refused", `block ${above?.number} is on the chain again`, { cause: above });
    if (ancestor === undefined) await this.#checkChain();
    logger.info("reorg removed blocks that were read", { from: this.tail, to: ancestor?.number });
    const after = ancestor ?? (await finality.findFinal(await rpc.header("latest")));
    if (ancestor === undefined) this.#recent.cutBack(-1); // No block that was read is on the chain.
    this.#begin(after);
    this.#shorterPolls = 0;
    for (const reading of this.#readings)
      reading.fork = { common: reading.fork === undefined ? ancestor : lower(ancestor, reading.fork.common) };
    this.#followedFrom = -1;
    this.#final = this.tail;
    this.#pendingHead = this.#head;
    for (const { onReorganised } of this.#listeners) onReorganised(ancestor?.number ?? -1);
    this.#changed.wake();
  }

  /** @throws RpcFailure if the endpoint serves another chain, whose blocks must not be read. A proxy may switch to it without closing connections. */
  async #checkChain(): Promise<void> {
    const { rpc, genesisHash } = this.#options;
    const { hash } = await rpc.header(0);
    if (hash === genesisHash) return;
    rpc.provider.doubtChain?.(); // Otherwise other requests, and transactions, would still go to that endpoint.
    for (const { onForeign } of this.#listeners) onForeign();
    // The final block depends on the head, so reading waits for a head of the group's chain.
    [this.#head, this.#pendingHead, this.#final] = [undefined, undefined, this.tail];
    const reason = `the endpoint serves another chain: its first block is ${hash}, and the group's is ${genesisHash}`;
    throw new RpcFailure("refused", reason, { cause: hash });
  }

  /** Makes the next round begin after this block; if undefined, after the first block that is final at a later head. */
  #begin(after: BlockRef | undefined): void {
    this.#recent.cutBack((after?.number ?? 0) - 1);
    this.#tail = after && { number: after.number, hash: after.hash };
    if (this.#tail !== undefined && !this.#options.isFinal) this.#recent.addRefs([this.#tail]);
  }

  #take(round: Round): void {
    const last = round.blocks.at(-1);
    this.#tail = last === undefined ? this.#tail : { number: last.number, hash: last.hash };
    this.#recent.add(round);
    if (!this.#options.isFinal) this.#recent.addRefs(round.blocks);
    for (const { onRound } of this.#listeners) onRound(round);
    this.#changed.wake();
  }

  /** Reads blocks after `after`, up to `to`, and at most as many as `size` allows; `gone` if `after` is no longer on the chain. `header`: see `ReadRange`. */
  async #read(
    after: BlockRef | undefined,
    {
      to,
      size,
      ended,
      header,
    }: Pick<Reading, "size" | "ended"> & { readonly to: number; readonly header?: Header | undefined },
  ): Promise<Round | "gone"> {
    const { reader, isFinal } = this.#options;
    const head = this.#head?.number ?? -1;
    const range = { after, to, blocksMax: size.blocks, head, header, ended };
    const round = isFinal ? await reader.readFinal(range) : await reader.read(range);
    if (round !== undefined) size.onAnswer(round.bytes);
    return round ?? "gone";
  }

  /** Repeats `task` until it succeeds; undefined if `place.ended` aborts first. */
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

  /**
   * Shrinks the range for the next attempt, since the range may have too many logs of strangers for the endpoint. Keeps the range if the endpoint did not
   * process the request, for example because it was busy. Pauses, unless the endpoint refused a range of several blocks.
   */
  async #recover(
    error: unknown,
    { from, stall, size, ended, attempt }: ReadingAt & { readonly attempt: number },
  ): Promise<void> {
    const kind = error instanceof RpcFailure ? error.kind : undefined;
    if (kind === "range-refused" && size.onRefusal()) return;
    if (ended.aborted) return;
    if (kind !== "unreached") size.onLost();
    stall.failed(`block ${from}`, error);
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
