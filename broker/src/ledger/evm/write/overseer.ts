import type { Address } from "../../../domain/topic.ts";
import type { BlockRef } from "../../../ports/ledger.ts";
import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Round } from "../read/block-reader.ts";
import type { FeePolicy } from "./fee-policy.ts";
import { isHeldBack } from "./held-back.ts";
import type { InFlight } from "./in-flight.ts";
import type { Signer } from "../native-crypto.ts";
import { type ContractLog, parseLog } from "../read/parse-log.ts";
import { type Inclusion, type PendingTransaction, withOtherGas } from "./pending-transaction.ts";
import type { Receipt, Rpc } from "../endpoint/rpc.ts";
import { type Fate, findFate } from "./transaction-fate.ts";
import type { Transmitter } from "./transmitter.ts";

/** A transaction older than this without a sign of it is asked for by its receipt, and sent again when there is none. */
const lookUpAfterMs = 1000;
/** Each further look waits as long again as the transaction is old, up to this. */
const lookUpPauseMsMax = 8000;
/** The same for one that the journal has not taken, and so is not sent: the database may be back any time. */
const journalPauseMsMax = 1000;
const tickMs = 250;
/** Transactions that are asked for at once. */
const lookUpsMax = 32;
/** Signed forms of one transaction. */
const variantsMax = 32;
/** Nonces that are filled at once. */
const gapMax = 64;
/** A call passes on 63 of 64 parts of its gas, so a transaction that ran out of it has used about all. */
const usedUp = 0.95;

export interface OverseerOptions {
  readonly rpc: Rpc;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signer: Signer;
  readonly registry: Address;
  readonly fees: FeePolicy;
  readonly feeBumpAfterMs: number;
  readonly inFlight: InFlight;
  readonly transmitter: Transmitter;
  readonly head: () => number;
  readonly readUpTo: () => number;
  /** Whether a block up to there is on the chain that was read. */
  readonly isRead: (block: BlockRef) => Promise<boolean>;
  readonly onOverdue: () => void;
  readonly onIncluded: (pending: PendingTransaction, inclusion: Inclusion) => void;
  readonly onReverted: (
    pending: PendingTransaction,
    revert: { readonly blockNumber: number; readonly isOutOfGas: boolean },
  ) => void;
  /** Another transaction has its nonce, in a final block. */
  readonly onReplaced: (pending: PendingTransaction) => void;
  /** These nonces are missing on the chain, and nothing in flight has them. */
  readonly onGap: (nonces: readonly number[]) => void;
}

/** Watches over what is in flight: learns fates from new blocks and from receipts, sends again what is gone, offers more for what is stuck. */
export class Overseer {
  readonly #options: OverseerOptions;
  #cancelTick: (() => void) | undefined;
  #lookUps = 0;
  /** Those to be looked up as soon as fewer are. */
  readonly #waiting = new Set<PendingTransaction>();
  /** Those that are being asked for: an endpoint may take long. */
  readonly #asked = new Set<PendingTransaction>();
  /** Those whose long waiting was told of. */
  readonly #told = new WeakSet<PendingTransaction>();
  #isStopped = false;
  /** The lowest nonce of which no block was known to hold it, the last time that was looked at. */
  #nextNonce: number | undefined;
  /** When all were asked for at once the last time. */
  #hurriedAt = Number.NEGATIVE_INFINITY;
  #isMissingStateTold = false;
  /** Why the fate of a transaction could not be read the last time; the same is told once. */
  #failure: string | undefined;

  constructor(options: OverseerOptions) {
    this.#options = options;
  }

  firstLookUpAt(now: number): number {
    return now + lookUpAfterMs;
  }

  /** To be called when something is put in flight. */
  watch(): void {
    if (!this.#isStopped) this.#cancelTick ??= this.#options.clock.after(tickMs, () => this.#tick());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTick?.();
  }

  onRound(round: Pick<Round, "logs">): void {
    const seen = this.#takeLogs(round.logs);
    let newestNonce = -1;
    for (const { nonce } of seen) newestNonce = Math.max(newestNonce, nonce ?? -1);
    for (const pending of seen) this.#resolveByLogs(pending);
    for (const pending of this.#options.inFlight.all()) {
      const isPassed = (pending.nonce ?? newestNonce) < newestNonce;
      const isFinalNow = pending.seenIn !== undefined && pending.seenIn <= this.#options.readUpTo();
      const hasNoLogs = pending.request.logsExpected === undefined && !pending.isFiller;
      if (isPassed || isFinalNow || seen.has(pending) || hasNoLogs) this.#waiting.add(pending);
    }
    this.#lookUpWaiting();
  }

  onReorganised(blockNumber: number): void {
    const now = this.#options.clock.monotonic();
    for (const pending of this.#options.inFlight.all()) {
      pending.logs = pending.logs.filter((log) => log.blockNumber <= blockNumber);
      if (pending.seenIn === undefined || pending.seenIn <= blockNumber) continue;
      pending.seenIn = undefined;
      pending.lookUpAt = now;
    }
  }

  /**
   * A node that has forgotten one, or never got it, lacks others as well: those of which no block is known are asked for soon. No more often
   * than each is asked for anyway: endpoints that are several nodes, and nodes that answer what they know as if it were new, seem to forget all the time.
   */
  onForgotten(): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#hurriedAt < lookUpPauseMsMax) return;
    this.#hurriedAt = now;
    for (const pending of this.#options.inFlight.all()) {
      if (pending.seenIn === undefined && now - pending.at >= lookUpAfterMs)
        pending.lookUpAt = Math.min(pending.lookUpAt, now);
    }
  }

  /** Signs it again for more, in the place of the form that waits, and sends that; answers false where nothing more can be offered. */
  async offerMore(pending: PendingTransaction): Promise<boolean> {
    const { fees, transmitter, logger } = this.#options;
    try {
      await fees.refresh();
    } catch (error) {
      logger.warn("gas price not read", { error });
    }
    const [newest] = pending.variants;
    if (newest === undefined || pending.isDone || pending.isSending || this.#isStopped) return false;
    const raised = pending.variants.length >= variantsMax ? undefined : fees.raised(newest.fees);
    if (raised === undefined) return false;
    logger.info("transaction offers more", { nonce: pending.nonce, form: pending.variants.length + 1 });
    try {
      await transmitter.sign(pending, raised);
    } catch (error) {
      logger.debug("transaction offers no more", { error }); // The journal has told of it.
    }
    return true;
  }

  #takeLogs(logs: readonly ContractLog[]): ReadonlySet<PendingTransaction> {
    const seen = new Set<PendingTransaction>();
    for (const log of logs) {
      const pending = this.#options.inFlight.find(log.transactionHash);
      if (pending === undefined) continue;
      pending.logs.push(log);
      seen.add(pending);
    }
    return seen;
  }

  #resolveByLogs(pending: PendingTransaction): void {
    const [first] = pending.logs;
    const { logsExpected } = pending.request;
    if (first === undefined || (logsExpected !== undefined && logsExpected !== pending.logs.length)) return;
    this.#options.onIncluded(pending, { blockNumber: first.blockNumber, logs: pending.logs });
  }

  #tick(): void {
    const { clock, inFlight, onOverdue, transmitter } = this.#options;
    this.#cancelTick = inFlight.size === 0 ? undefined : clock.after(tickMs, () => this.#tick());
    const now = clock.monotonic();
    this.#hasten();
    const due = inFlight.all().filter((pending) => pending.lookUpAt <= now && !this.#asked.has(pending));
    // The longest due are taken, so that none waits for ever behind others; in their order, since many a node takes no nonce before its turn.
    const longestDue = due.toSorted((left, right) => left.lookUpAt - right.lookUpAt);
    const chosen = longestDue.slice(0, Math.max(0, lookUpsMax - this.#lookUps));
    for (const pending of chosen.toSorted((left, right) => (left.nonce ?? 0) - (right.nonce ?? 0))) {
      const pauseMsMax = transmitter.isUnrecorded(pending) ? journalPauseMsMax : lookUpPauseMsMax;
      pending.lookUpAt = now + Math.max(tickMs, Math.min(now - pending.at, pauseMsMax));
      onOverdue();
      void this.#lookAfter(pending);
    }
  }

  /** Whoever has become the next in line is asked for soon, however long it has waited: without it nothing behind it comes in. */
  #hasten(): void {
    const { inFlight } = this.#options;
    const nonce = inFlight.lowestUnseenNonce();
    if (nonce === undefined || nonce === this.#nextNonce) return;
    this.#nextNonce = nonce;
    const next = inFlight.findNonce(nonce);
    if (next !== undefined) next.lookUpAt = Math.min(next.lookUpAt, this.firstLookUpAt(next.at));
  }

  async #lookAfter(pending: PendingTransaction): Promise<void> {
    this.#asked.add(pending);
    try {
      const fate = await this.#lookUp(pending);
      if (fate?.kind === "absent") await this.#onAbsent(pending, fate.count);
    } finally {
      this.#asked.delete(pending);
    }
  }

  #lookUpWaiting(): void {
    for (const pending of this.#waiting) {
      if (this.#lookUps >= lookUpsMax) return;
      this.#waiting.delete(pending);
      void this.#lookUp(pending);
    }
  }

  /** Learns the fate from the chain; undefined when that cannot be had, or nothing is to be learned any more. */
  async #lookUp(pending: PendingTransaction): Promise<Fate | undefined> {
    if (pending.isDone || pending.nonce === undefined || this.#isStopped) return undefined;
    const { rpc, signer, readUpTo, isRead } = this.#options;
    this.#lookUps += 1;
    try {
      const { nonce } = pending;
      const fate = await findFate(pending, { rpc, sender: signer.address, readUpTo, isRead });
      this.#failure = undefined;
      if (pending.isDone || pending.nonce !== nonce || this.#isStopped) return undefined;
      this.#apply(pending, fate);
      return fate;
    } catch (error) {
      this.#onUnread(pending, error);
      return undefined;
    } finally {
      this.#lookUps -= 1;
      this.#lookUpWaiting();
    }
  }

  /** The endpoint may be back any time: the next in line tells soon what it has kept. The same reason is told once. */
  #onUnread(pending: PendingTransaction, error: unknown): void {
    const { clock, inFlight, logger } = this.#options;
    const { nonce } = pending;
    const isNext = nonce === inFlight.lowestNonce() || nonce === inFlight.lowestUnseenNonce();
    if (isNext) pending.lookUpAt = Math.min(pending.lookUpAt, clock.monotonic() + lookUpAfterMs);
    const reason = error instanceof Error ? error.message : String(error);
    if (reason !== this.#failure) logger.warn("fate of a transaction not read", { nonce, reason });
    this.#failure = reason;
    logger.debug("fate of a transaction not read", { nonce, error });
  }

  #apply(pending: PendingTransaction, fate: Fate): void {
    pending.seenIn = fate.kind === "seen" ? fate.blockNumber : undefined;
    if (fate.kind === "included") this.#settle(pending, fate.receipt);
    if (fate.kind === "replaced" && !pending.isSending) this.#options.onReplaced(pending);
  }

  #settle(pending: PendingTransaction, receipt: Receipt): void {
    const { blockNumber, succeeded, gasUsed } = receipt;
    if (succeeded) this.#options.onIncluded(pending, { blockNumber, logs: this.#parse(receipt) });
    else this.#options.onReverted(pending, { blockNumber, isOutOfGas: gasUsed >= pending.request.gas * usedUp });
  }

  #parse(receipt: Receipt): ContractLog[] {
    return receipt.logs.flatMap((log) => parseLog(log, this.#options.registry) ?? []);
  }

  /** The endpoint may have forgotten it, so what cannot offer more is sent as it is: without it nothing that comes behind it comes in. */
  async #onAbsent(pending: PendingTransaction, count: number | undefined): Promise<void> {
    const { inFlight, transmitter } = this.#options;
    if (pending.isDone || pending.nonce === undefined) return;
    if (count === undefined) this.#tellOfMissingState();
    const isNext = pending.nonce === inFlight.lowestNonce();
    if (isNext && count !== undefined && count < pending.nonce) this.#reportGap(count, pending.nonce);
    const [newest] = pending.variants;
    if ((await isHeldBack(pending, this.#options)) && newest === pending.variants[0])
      return this.#offerAnother(pending);
    if (!this.#isStuck(pending, isNext)) return transmitter.send(pending);
    if (await this.offerMore(pending)) return;
    this.#tellOfWaiting(pending);
    await transmitter.send(pending);
  }

  #tellOfMissingState(): void {
    if (this.#isMissingStateTold) return;
    this.#isMissingStateTold = true;
    this.#options.logger.warn("state of the newest final block refused, lost transactions may be noticed late", {
      blockNumber: this.#options.readUpTo(),
    });
  }

  /** Signs it for more, or where nothing more can be offered for other gas: it has to be another transaction. */
  async #offerAnother(pending: PendingTransaction): Promise<void> {
    const [newest] = pending.variants;
    this.#options.logger.info("transaction held back by the endpoint's pool, signing another form", {
      nonce: pending.nonce,
    });
    if (newest === undefined || (await this.offerMore(pending))) return;
    // Meanwhile it may have come in, or lost its nonce to somebody else's.
    if (newest !== pending.variants[0] || pending.isDone || pending.isSending || this.#isStopped) return;
    pending.request = withOtherGas(pending.request);
    await this.#options.transmitter.sign(pending, newest.fees)?.catch(() => {}); // Who writes the journal has told of it.
  }

  #tellOfWaiting(pending: PendingTransaction): void {
    if (this.#told.has(pending)) return;
    this.#told.add(pending);
    const waitsMs = this.#options.clock.monotonic() - pending.at;
    this.#options.logger.warn("transaction waits for long, sent again and again", { nonce: pending.nonce, waitsMs });
  }

  #reportGap(from: number, to: number): void {
    this.#options.onGap(Array.from({ length: Math.min(to - from, gapMax) }, (_, index) => from + index));
  }

  /** It waits for long while blocks come, and is the next in line or offers too little. */
  #isStuck(pending: PendingTransaction, isNext: boolean): boolean {
    const { clock, feeBumpAfterMs, head, fees } = this.#options;
    const [newest] = pending.variants;
    if (newest === undefined || clock.monotonic() - newest.signedAt < feeBumpAfterMs) return false;
    return head() > newest.signedAtBlock && (isNext || !fees.covers(newest.fees));
  }
}
