import type { Address } from "../../../domain/topic.ts";
import { groupBy } from "../../../lib/group-by.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import type { Receipt } from "../endpoint/rpc.ts";
import type { Round } from "../read/block-reader.ts";
import { type ContractLog, parseLog } from "../read/parse-log.ts";
import type { FeePolicy } from "./fee-policy.ts";
import { type HeldBackOptions, isHeldBack } from "./held-back.ts";
import type { PendingTransaction } from "./pending-transaction.ts";
import { type Fate, type FateOptions, findFate } from "./transaction-fate.ts";
import type { TransactionEvent } from "./transaction-transition.ts";
import type { Transmitter } from "./transmitter.ts";

/** Age in milliseconds at which the overseer requests the receipt of a transaction in no known block, and resends the transaction if it has none. */
const lookUpAfterMs = 1000;
/** Upper bound on the pause between two checks of one transaction, in milliseconds; the pause grows with its age. */
const lookUpPauseMsMax = 8000;
/** Upper bound on the pause between two checks of a transaction that the journal lacks, in milliseconds: the database may return at any time. */
const journalPauseMsMax = 1000;
const tickMs = 250;
/** Upper bound on concurrent checks of transactions. */
const lookUpsMax = 32;
/** Upper bound on the signed versions of one transaction. */
const variantsMax = 32;
/** Upper bound on the missing nonces that the sender fills at once. */
const gapMax = 64;
/** A reverted transaction that used at least this part of its gas counts as out of gas. It never uses all: a call passes on at most 63/64 (EIP-150). */
const usedUp = 0.95;

export interface OverseerOptions extends HeldBackOptions, Omit<FateOptions, "sender"> {
  /** The group's registry; only its logs count. */
  readonly registry: Address;
  readonly fees: FeePolicy;
  /** How long a transaction waits in the endpoint's pool before its fee is raised, in milliseconds. */
  readonly feeBumpAfterMs: number;
  readonly transmitter: Transmitter;
  /** The newest known block. */
  readonly head: () => number;
  /** Upper bound on the gas of one transaction. */
  readonly blockGas: () => number;
  /** Called when a new block is overdue. */
  readonly onOverdue: () => void;
  readonly dispatch: (pending: PendingTransaction, event: TransactionEvent) => void;
  /** Called when the chain lacks these nonces and nothing in flight has them. */
  readonly onGap: (nonces: readonly number[]) => void;
}

/** Watches the transactions in flight: learns their fate from new blocks and receipts, resends lost ones, raises the fee of stuck ones. */
export class Overseer {
  readonly #options: OverseerOptions;
  #cancelTick: (() => void) | undefined;
  #lookUps = 0;
  /** Transactions to check as soon as fewer checks run. */
  readonly #waiting = new Set<PendingTransaction>();
  /** Transactions that a tick checks at present; a slow endpoint may take longer than the pause between checks. */
  readonly #asked = new Set<PendingTransaction>();
  #isStopped = false;
  /** The lowest unseen nonce at the last tick. */
  #nextNonce: number | undefined;
  /** When a lost transaction last caused a check of all transactions, on the monotonic clock. */
  #hurriedAt = Number.NEGATIVE_INFINITY;
  #isMissingStateReported = false;
  readonly #trouble: ReportedTrouble;

  constructor(options: OverseerOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(options.logger, "fate of a transaction not read");
  }

  firstLookUpAt(now: number): number {
    return now + lookUpAfterMs;
  }

  /** Call it after putting a transaction in flight. */
  watch(): void {
    if (!this.#isStopped) this.#cancelTick ??= this.#options.clock.after(tickMs, () => this.#tick());
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTick?.();
  }

  onRound(round: Pick<Round, "logs">): void {
    const { inFlight, readUpTo, dispatch } = this.#options;
    const seen = this.#groupLogs(round.logs);
    const newestNonce = Math.max(-1, ...[...seen.keys()].map(({ state }) => state.nonce ?? -1));
    for (const [pending, logs] of seen) dispatch(pending, { kind: "logged", logs });
    for (const pending of inFlight.all()) {
      const { nonce, seenIn, request, isNoOp } = pending.state;
      const isPassed = (nonce ?? newestNonce) < newestNonce;
      const isFinalNow = seenIn !== undefined && seenIn <= readUpTo();
      const hasNoLogs = (request.logsExpected === undefined || request.mayRevert === true) && !isNoOp;
      if (isPassed || isFinalNow || seen.has(pending) || hasNoLogs) this.#waiting.add(pending);
    }
    this.#lookUpWaiting();
  }

  onReorganised(blockNumber: number): void {
    for (const pending of this.#options.inFlight.all())
      this.#options.dispatch(pending, { kind: "rolled-back", blockNumber });
  }

  /**
   * A chain node that lost one transaction probably lost others: checks all unseen ones soon. Does so at most once per `lookUpPauseMsMax`: several chain nodes
   * behind one address, or one that accepts known transactions as new, seem to lose transactions all the time.
   */
  onForgotten(): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#hurriedAt < lookUpPauseMsMax) return;
    this.#hurriedAt = now;
    for (const pending of this.#options.inFlight.all()) {
      if (pending.state.seenIn === undefined && now - pending.at >= lookUpAfterMs)
        pending.lookUpAt = Math.min(pending.lookUpAt, now);
    }
  }

  /** Signs a version with higher fees and sends it; false if the transaction may not be signed now, or if its fees or versions are at their maximum. */
  async offerMore(pending: PendingTransaction): Promise<boolean> {
    const { fees, transmitter, logger } = this.#options;
    try {
      await fees.refresh();
    } catch (error) {
      logger.warn("gas price not read", { error });
    }
    const { variants, nonce } = pending.state;
    const [newest] = variants;
    if (newest === undefined || !this.#maySign(pending)) return false;
    const raised = variants.length >= variantsMax ? undefined : fees.raised(newest.fees);
    if (raised === undefined) return false;
    logger.info("transaction fee raised", { nonce, version: variants.length + 1 });
    await transmitter.sign(pending, raised);
    return true;
  }

  #maySign({ state }: PendingTransaction): boolean {
    return !state.isDone && !state.isBusy && !this.#isStopped;
  }

  #groupLogs(logs: readonly ContractLog[]): ReadonlyMap<PendingTransaction, readonly ContractLog[]> {
    const groups = new Map<PendingTransaction, readonly ContractLog[]>();
    for (const [hash, group] of groupBy(logs, ({ transactionHash }) => transactionHash)) {
      const pending = this.#options.inFlight.find(hash);
      if (pending !== undefined) groups.set(pending, group);
    }
    return groups;
  }

  #tick(): void {
    const { clock, inFlight, onOverdue } = this.#options;
    this.#cancelTick = inFlight.size === 0 ? undefined : clock.after(tickMs, () => this.#tick());
    const now = clock.monotonic();
    this.#hasten();
    const due = inFlight.all().filter((pending) => pending.lookUpAt <= now && !this.#asked.has(pending));
    // The longest overdue go first, so that none starves. Among those, ascending nonces: many chain nodes accept a nonce only in its turn.
    const longestDue = due.toSorted((left, right) => left.lookUpAt - right.lookUpAt);
    const chosen = longestDue.slice(0, Math.max(0, lookUpsMax - this.#lookUps));
    for (const pending of chosen.toSorted((left, right) => (left.state.nonce ?? 0) - (right.state.nonce ?? 0))) {
      const pauseMsMax = pending.state.isRecorded ? lookUpPauseMsMax : journalPauseMsMax;
      pending.lookUpAt = now + Math.max(tickMs, Math.min(now - pending.at, pauseMsMax));
      onOverdue();
      void this.#lookAfter(pending);
    }
  }

  /** Checks the next transaction in line soon, however old it is: the chain includes no later nonce before this one. */
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

  /** Reads the fate from the chain; undefined if the chain does not answer, if the transaction is settled or lost its nonce, or after `stop`. */
  async #lookUp(pending: PendingTransaction): Promise<Fate | undefined> {
    const { nonce, isDone, variants } = pending.state;
    if (isDone || nonce === undefined || this.#isStopped) return undefined;
    const { rpc, signer, readUpTo, isRead } = this.#options;
    this.#lookUps += 1;
    try {
      const fate = await findFate(pending.state, { rpc, sender: signer.address, readUpTo, isRead });
      this.#trouble.done();
      if (pending.state.isDone || pending.state.nonce !== nonce || this.#isStopped) return undefined;
      // A version that was signed meanwhile may be the transaction that used the nonce: check again later.
      if (fate.kind === "replaced" && pending.state.variants !== variants) return undefined;
      this.#options.dispatch(pending, this.#toEvent(fate, pending));
      return fate;
    } catch (error) {
      this.#onUnread(pending, error);
      return undefined;
    } finally {
      this.#lookUps -= 1;
      this.#lookUpWaiting();
    }
  }

  /** Checks the next transaction in line soon: the endpoint may answer again at any time. */
  #onUnread(pending: PendingTransaction, error: unknown): void {
    const { clock, inFlight } = this.#options;
    const { nonce } = pending.state;
    const isNext = nonce === inFlight.lowestNonce() || nonce === inFlight.lowestUnseenNonce();
    if (isNext) pending.lookUpAt = Math.min(pending.lookUpAt, clock.monotonic() + lookUpAfterMs);
    this.#trouble.failed(error, { nonce });
  }

  #toEvent(fate: Fate, { state }: PendingTransaction): TransactionEvent {
    if (fate.kind === "absent") {
      const { readUpTo, clock, blockGas } = this.#options;
      const { count } = fate;
      const isUsed = (count ?? 0) > (state.nonce ?? 0);
      const look = count === undefined ? undefined : { isUsed, readUpTo: readUpTo(), at: clock.monotonic() };
      const isTooLarge = state.request.gas > blockGas();
      return { kind: "absent", isNext: this.#isNext(state.nonce, count), look, isTooLarge };
    }
    if (fate.kind !== "included") return fate;
    const { blockNumber, succeeded, gasUsed } = fate.receipt;
    return succeeded
      ? { kind: "included", inclusion: { blockNumber, logs: this.#parse(fate.receipt) } }
      : { kind: "reverted", blockNumber, isOutOfGas: gasUsed >= state.request.gas * usedUp };
  }

  /** Whether the chain probably waits for this nonce. `count` is the account's number of final transactions, if known. */
  #isNext(nonce: number | undefined, count: number | undefined): boolean {
    return nonce !== undefined && nonce === this.#options.inFlight.lowestUnseenNonce() && (count ?? 0) <= nonce;
  }

  #parse(receipt: Receipt): readonly ContractLog[] {
    return receipt.logs.flatMap((log) => parseLog(log, this.#options.registry) ?? []);
  }

  /** The endpoint may have lost the transaction. Resends it, with a higher fee if it is stuck: the chain includes no later nonce before it. */
  async #onAbsent(pending: PendingTransaction, count: number | undefined): Promise<void> {
    const { inFlight, transmitter } = this.#options;
    const { nonce, isDone, variants } = pending.state;
    if (isDone || nonce === undefined) return;
    if (count === undefined) this.#reportMissingState();
    const isLowest = nonce === inFlight.lowestNonce();
    if (isLowest && count !== undefined && count < nonce) this.#reportGap(count, nonce);
    const [newest] = variants;
    if ((await isHeldBack(pending.state, this.#options)) && newest === pending.state.variants[0])
      return this.#offerAnother(pending);
    if (!this.#isStuck(pending)) return transmitter.send(pending);
    if (!(await this.offerMore(pending))) await transmitter.send(pending);
  }

  #reportMissingState(): void {
    if (this.#isMissingStateReported) return;
    this.#isMissingStateReported = true;
    this.#options.logger.warn(
      "endpoint refused the state of the newest final block; lost transactions may be noticed late",
      {
        blockNumber: this.#options.readUpTo(),
      },
    );
  }

  /** Raises the fee or, if that is not possible, changes the gas: only a different transaction helps. */
  async #offerAnother(pending: PendingTransaction): Promise<void> {
    const { logger, dispatch, transmitter } = this.#options;
    const { nonce, variants } = pending.state;
    const [newest] = variants;
    logger.info("transaction held back by the endpoint's pool, signing another version", { nonce });
    if (newest === undefined || (await this.offerMore(pending))) return;
    // Meanwhile a block may have included the transaction, or another transaction may have used its nonce.
    if (newest !== pending.state.variants[0] || !this.#maySign(pending)) return;
    dispatch(pending, { kind: "held-back" });
    await transmitter.sign(pending, newest.fees);
  }

  /** Reports the nonces from `from` to `to` that nothing in flight has. Those in flight are no gap: a chain node that lags may not count them as used yet. */
  #reportGap(from: number, to: number): void {
    const { inFlight, onGap } = this.#options;
    const nonces = Array.from({ length: Math.min(to - from, gapMax) }, (_, index) => from + index);
    onGap(nonces.filter((nonce) => inFlight.findNonce(nonce) === undefined));
  }

  /** Whether the newest version has waited long while the chain made blocks, and either the chain waits for its nonce or its fee is too low. */
  #isStuck({ state: { nonce, variants } }: PendingTransaction): boolean {
    const { clock, feeBumpAfterMs, head, fees, inFlight } = this.#options;
    const [newest] = variants;
    if (newest === undefined || clock.monotonic() - newest.signedAt < feeBumpAfterMs) return false;
    // Not `>`: after a reorg, or after blocks of another chain, the newest block may be lower.
    return head() !== newest.signedAtBlock && (nonce === inFlight.lowestUnseenNonce() || !fees.covers(newest.fees));
  }
}
