import { BrokerError } from "@stele/wire";
import { allowManyListeners } from "../../../lib/cancellation.ts";
import { pause } from "../../../lib/pause.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import { toRpcFailure } from "../endpoint/rpc-failure.ts";
import type { Round } from "../read/block-reader.ts";
import { InFlight } from "./in-flight.ts";
import { JournalRecovery } from "./journal-recovery.ts";
import type { JournalWriter } from "./journal-writer.ts";
import { Nonces } from "./nonces.ts";
import { Overseer, type OverseerOptions } from "./overseer.ts";
import { PendingTransaction } from "./pending-transaction.ts";
import {
  type Inclusion,
  isRetractable,
  newTransaction,
  noOp,
  type Rejection,
  type TransactionRequest,
  type TransactionState,
} from "./transaction-state.ts";
import type { Effect, TransactionEvent } from "./transaction-transition.ts";
import { TransactionTrouble, type TransactionTroubleOptions } from "./transaction-trouble.ts";
import { Transmitter } from "./transmitter.ts";

/** How long an endpoint is retried before transactions that it certainly lacks are withdrawn, in milliseconds. */
const reachWithinMs = 5000;
const retryMs = 200;
/** Pause between two checks whether the open transactions are settled, in milliseconds. */
const settleLookMs = 50;
/** Upper bound on the signed transactions that no known block contains; further ones wait. */
const inFlightMax = 256;

export interface TransactionSenderOptions
  extends Omit<OverseerOptions, "inFlight" | "transmitter" | "dispatch" | "onGap">,
    Omit<TransactionTroubleOptions, "inFlight"> {
  readonly chainId: number;
  /** Undefined if pending transactions end with this process. */
  readonly journal: JournalWriter | undefined;
  /** Called when a new block is likely. */
  readonly onSent: () => void;
  /** Estimates the gas of a transaction that had too little. */
  readonly estimateGas: (request: TransactionRequest) => Promise<number>;
  /** Whether a nonce that the chain lacks must stay free for the registry's deployment. */
  readonly isKept: (nonce: number) => boolean;
}

type Performers = {
  readonly [Kind in Effect["kind"]]: (pending: PendingTransaction, effect: Extract<Effect, { kind: Kind }>) => void;
};

/** Effects after which a queued transaction may be sent. */
const freeing: ReadonlySet<Effect["kind"]> = new Set(["leave", "resolve", "withdraw", "enqueue", "dequeue"]);

/**
 * Sends transactions in the order of the calls, several at once, and learns the outcome of each. A caller waits until its deadline at most. The
 * transaction is tracked until its fate can no longer change, across restarts if there is a journal. Each transaction moves by `transition`; this
 * class performs the effects.
 */
export class TransactionSender {
  readonly #options: TransactionSenderOptions;
  /** Transactions that wait for a nonce, in the order of the calls. */
  #queue: PendingTransaction[] = [];
  readonly #inFlight = new InFlight();
  readonly #nonces = new Nonces();
  readonly #recovery: JournalRecovery;
  readonly #transmitter: Transmitter;
  readonly #overseer: Overseer;
  readonly trouble: TransactionTrouble;
  readonly #nonceTrouble: ReportedTrouble;
  /** Transactions whose next retry is scheduled. Sends by the overseer can fail too, and must not begin another series of retries. */
  readonly #retrying = new Set<PendingTransaction>();
  #calls = 0;
  #isAsking = false;
  /** When the chain last answered which nonce is next, or failed to, on the monotonic clock. */
  #askedAt = Number.NEGATIVE_INFINITY;
  #isStopped = false;
  #isEnded = false;

  constructor(options: TransactionSenderOptions) {
    this.#options = options;
    this.#nonceTrouble = new ReportedTrouble(options.logger, "nonce not read, trying again", "nonce read again");
    const inFlight = this.#inFlight;
    const dispatch = (pending: PendingTransaction, event: TransactionEvent): void => this.#dispatch(pending, event);
    this.#recovery = new JournalRecovery({ ...options, adopt: (pending) => this.#adopt(pending) });
    this.trouble = new TransactionTrouble({ ...options, inFlight });
    this.#transmitter = new Transmitter({ ...options, inFlight, dispatch });
    const onGap = (nonces: readonly number[]): void => this.#fillGap(nonces);
    this.#overseer = new Overseer({ ...options, inFlight, transmitter: this.#transmitter, dispatch, onGap });
  }

  /** Number of transactions that are not final yet, including those that wait for a nonce. */
  get unfinished(): number {
    return this.#all().length;
  }

  /** Resumes the transactions that an earlier run left in the journal. */
  async start(): Promise<void> {
    this.#nonces.atLeast(await this.#recovery.start());
  }

  /**
   * Waits until every caller has an answer. If `signal` aborts, withdraws what no endpoint has, and answers that the other outcomes are unknown. A
   * later run resumes what the journal has.
   */
  async stop(signal?: AbortSignal): Promise<void> {
    this.#isStopped = true;
    const waited = this.#all().filter(({ state }) => !state.isAnswered);
    const expireAll = (): void => {
      for (const pending of waited) this.#expire(pending);
    };
    if (signal?.aborted === true) expireAll();
    else signal?.addEventListener("abort", expireAll, { once: true });
    await Promise.allSettled(waited.map(({ outcome }) => outcome));
    this.#isEnded = true;
    this.#overseer.stop();
    this.#recovery.stop();
  }

  /** @throws TransactionTooLarge, or BrokerError 200202, 200201, 200205 as the Ledger port says. */
  async send(request: TransactionRequest, signal: AbortSignal): Promise<Inclusion> {
    if (this.#isStopped) throw new BrokerError("chainUnreachable", { details: "the ledger is stopped" });
    if (signal.aborted) throw new BrokerError("transactionFailed", { details: "aborted before it was sent" });
    const pending = this.#create(newTransaction(this.#options.signer.address, request));
    const expire = (): void => this.#expire(pending);
    const cancelDeadline = this.#options.clock.after(this.#options.deadlineMs, expire);
    allowManyListeners(signal); // The engine gives each call a signal of its own, but other callers may share one.
    signal.addEventListener("abort", expire);
    pending.release = () => {
      cancelDeadline();
      signal.removeEventListener("abort", expire);
    };
    this.#enqueue(pending);
    this.#pump();
    return pending.outcome;
  }

  /** True once each transaction requested before the call is final or can never be included; false if `signal` aborts first. */
  async settle(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    while (this.#recovery.isBringingBack && !signal.aborted) await pause(clock, settleLookMs, signal);
    const open = this.#all();
    while (open.some(({ state }) => !state.isDone) && !signal.aborted) await pause(clock, settleLookMs, signal);
    return !signal.aborted;
  }

  /** Call it with the logs of new final blocks. */
  onRound(round: Pick<Round, "logs">): void {
    this.#overseer.onRound(round);
    this.#recovery.prune(this.#options.readUpTo());
  }

  /** Blocks after `blockNumber` are no longer on the chain; their transactions are resent unless the new branch has them. */
  onReorganised(blockNumber: number): void {
    this.#overseer.onReorganised(blockNumber);
    this.#recovery.onReorganised(blockNumber);
  }

  #all(): readonly PendingTransaction[] {
    return [...this.#queue, ...this.#inFlight.all()];
  }

  #create(state: TransactionState): PendingTransaction {
    this.#calls += 1;
    const at = this.#options.clock.monotonic();
    return new PendingTransaction(state, { at, order: this.#calls, lookUpAt: this.#overseer.firstLookUpAt(at) });
  }

  /** The one place where a transaction changes. */
  #dispatch(pending: PendingTransaction, event: TransactionEvent): void {
    const effects = pending.apply(event);
    for (const effect of effects) {
      const perform = this.#performers[effect.kind] as (pending: PendingTransaction, effect: Effect) => void; // Chosen by the effect's kind.
      perform(pending, effect);
    }
    if (effects.some(({ kind }) => freeing.has(kind))) this.#pump();
  }

  readonly #performers: Performers = {
    sign: (pending, { gaveUp }) => {
      const { nonce } = pending.state;
      if (gaveUp !== undefined)
        this.#options.logger.warn("transaction given up, a no-op takes its nonce", { nonce, reason: gaveUp });
      void this.#sign(pending);
    },
    send: (pending) => void this.#transmitter.send(pending),
    taken: (pending, { isForgotten, isNew }) => {
      if (isNew) this.trouble.onTaken();
      this.#options.onSent();
      if (isForgotten) this.#overseer.onForgotten();
      this.#transmitter.sendNext(pending);
    },
    unanswered: (pending, { failure }) => {
      this.trouble.onUnanswered(failure);
      this.#onUnanswered(pending);
    },
    "offer-more": (pending) => void this.#overseer.offerMore(pending),
    estimate: (pending, { error }) => void this.#estimate(pending, error),
    leave: (pending, signed) => {
      this.#inFlight.delete(pending, signed);
      void this.#recovery.forget([signed.nonce]);
    },
    "nonce-used": (_, { nonce, isFinal }) => {
      this.#nonces.atLeast(nonce + 1);
      this.#nonces.doubt();
      const next = isFinal ? "" : ", signing the transaction again with another nonce";
      this.#options.logger.warn(`another sender used this signer's nonce${next}`, { nonce });
    },
    enqueue: (pending) => this.#enqueue(pending),
    dequeue: (pending) => {
      this.#queue = this.#queue.filter((other) => other !== pending);
    },
    resolve: (pending, { inclusion }) => {
      this.trouble.onTaken();
      this.#inFlight.delete(pending);
      this.#recovery.keep(pending, inclusion);
      pending.resolve(inclusion);
    },
    reject: (pending, { reason }) => this.#reject(pending, reason),
    withdraw: (pending, { nonce, reason }) => this.#withdraw(pending, { nonce, reason }),
    "withdraw-all": (pending) => {
      if (!this.#withdrawAll(pending)) this.#dispatch(pending, { kind: "retracted", reason: "unreachable" });
    },
    "look-up": (pending) => {
      pending.lookUpAt = this.#options.clock.monotonic();
    },
  };

  /** Inserts a transaction behind those of all earlier calls, even if it lost a nonce and is signed again. */
  #enqueue(pending: PendingTransaction): void {
    const at = this.#queue.findLastIndex(({ order }) => order < pending.order) + 1;
    this.#queue.splice(at, 0, pending);
  }

  /** Signs and sends the queue, in order. It never waits, so that calls keep their order. */
  #pump(): void {
    while (this.#queue.length > 0 && this.#inFlight.unseen < inFlightMax) {
      if (!this.#nonces.isKnown) {
        this.#askNonce();
        return;
      }
      const pending = this.#queue.shift();
      const nonce = this.#nonces.take();
      if (pending === undefined || nonce === undefined) return;
      this.#dispatch(pending, { kind: "numbered", nonce });
    }
  }

  /** Signs a version and sends it; see {@link Transmitter.sign}. If an endpoint has an older version, raises the fee above that one. */
  #sign(pending: PendingTransaction): Promise<boolean> | undefined {
    const { fees } = this.#options;
    const { reach, variants } = pending.state;
    const [older] = reach === "taken" ? variants : [];
    const recorded = this.#transmitter.sign(pending, (older && fees.raised(older.fees)) ?? fees.current());
    this.#overseer.watch();
    return recorded;
  }

  /** Retries an unanswered send, often at first. Later withdraws the transaction if no endpoint can have it; otherwise leaves it to the overseer. */
  #onUnanswered(pending: PendingTransaction): void {
    this.#nonces.doubt();
    const isLate = this.#options.clock.monotonic() - pending.at >= reachWithinMs;
    if (isLate && isRetractable(pending.state)) this.#withdrawAll(pending);
    const { isDone, reach } = pending.state;
    if (this.#isEnded || isDone || (isLate && reach !== "nowhere") || this.#retrying.has(pending)) return;
    this.#retrying.add(pending);
    this.#options.clock.after(retryMs, () => {
      this.#retrying.delete(pending);
      if (!this.#isEnded) void this.#transmitter.send(pending);
    });
  }

  async #estimate(pending: PendingTransaction, error: BrokerError): Promise<void> {
    const { nonce, request } = pending.state;
    let gas: number | undefined;
    try {
      gas = await this.#options.estimateGas(request);
    } catch (failure) {
      this.#options.logger.warn("gas not estimated", { error: failure });
    }
    this.#dispatch(pending, { kind: "estimated", gas, nonce, error });
  }

  #expire(pending: PendingTransaction): void {
    this.#dispatch(pending, { kind: "expired" });
  }

  /** Withdraws a transaction and those with later nonces; returns false, and withdraws none, if an endpoint may have one of them or refused one. */
  #withdrawAll(first: PendingTransaction): boolean {
    const { nonce } = first.state;
    if (nonce === undefined) return false;
    const all = this.#inFlight.from(nonce);
    if (!all.every(({ state }) => isRetractable(state) && state.refusal === undefined)) return false;
    for (const pending of all) this.#dispatch(pending, { kind: "retracted", reason: "unreachable" });
    return true;
  }

  /** Withdraws a transaction that no endpoint has. A no-op fills its nonce if later ones are in use. */
  #withdraw(
    pending: PendingTransaction,
    { nonce, reason }: { readonly nonce: number; readonly reason: Rejection },
  ): void {
    this.#inFlight.delete(pending);
    const removed = this.#nonces.giveBack(nonce) ? this.#recovery.forget([nonce]) : this.#fill(nonce);
    if (this.#options.journal === undefined) this.#reject(pending, reason);
    else void this.#rejectAfter(removed, pending, reason);
  }

  /** Rejects once the journal lacks the transaction, so that a restart does not send it either; with an unknown outcome if that fails. */
  async #rejectAfter(
    removed: Promise<boolean> | undefined,
    pending: PendingTransaction,
    reason: Rejection,
  ): Promise<void> {
    if ((await removed) === true) this.#reject(pending, reason);
    else pending.reject(new BrokerError("transactionTimeout"));
  }

  #reject(pending: PendingTransaction, reason: Rejection): void {
    pending.reject(this.trouble.onRejected(reason));
  }

  /** Uses up a nonce with a no-op; see {@link Transmitter.sign}. */
  #fill(nonce: number): Promise<boolean> | undefined {
    const { signer, logger } = this.#options;
    const state = newTransaction(signer.address, noOp(signer.address));
    const filler = this.#create({ ...state, nonce, isNoOp: true, isAnswered: true });
    logger.info("nonce filled with a no-op transaction", { nonce });
    return this.#sign(filler);
  }

  /** Resumes or fills nonces that the chain lacks and nothing in flight has: the chain lost their transactions, or nobody sent any. */
  #fillGap(nonces: readonly number[]): void {
    const kept = this.#recovery.resume(nonces);
    const free = nonces.filter((nonce) => !kept.includes(nonce) && !this.#options.isKept(nonce));
    for (const nonce of free) void this.#fill(nonce);
  }

  #adopt(pending: PendingTransaction): void {
    const { nonce } = pending.state;
    if (nonce === undefined || this.#inFlight.findNonce(nonce) !== undefined) return;
    this.#inFlight.add(pending);
    this.#overseer.watch();
  }

  /**
   * Asks the chain for the next nonce, with a pause between two requests: the chain node may not answer, or its count may be too low, so that it refuses the
   * next nonce as used.
   */
  #askNonce(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { clock } = this.#options;
    const waitMs = this.#askedAt + retryMs - clock.monotonic();
    if (waitMs <= 0) void this.#readNonce();
    else clock.after(waitMs, () => this.#onAsked());
  }

  async #readNonce(): Promise<void> {
    const { rpc, signer, clock } = this.#options;
    try {
      this.#nonces.onCount(await rpc.transactionCount(signer.address, "pending"));
      this.#nonceTrouble.done();
      this.trouble.onNonce();
    } catch (error) {
      this.#nonceTrouble.failed(error);
      this.trouble.onNonce(toRpcFailure(error));
      this.#expireQueue();
    }
    this.#askedAt = clock.monotonic();
    this.#onAsked();
  }

  #onAsked(): void {
    this.#isAsking = false;
    this.#pump();
  }

  /** Answers the calls that waited long enough for the endpoint; their transactions have no nonce. */
  #expireQueue(): void {
    const oldest = this.#options.clock.monotonic() - reachWithinMs;
    for (const pending of this.#queue) if (pending.at <= oldest) this.#expire(pending);
  }
}
