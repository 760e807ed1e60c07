import { BrokerError } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import type { Logger } from "../../../lib/logger.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { BlockRef } from "../../../ports/ledger.ts";
import { AbortListeners } from "./abort-listeners.ts";
import type { Round } from "../read/block-reader.ts";
import type { FeePolicy } from "./fee-policy.ts";
import { InFlight } from "./in-flight.ts";
import { JournalRecovery } from "./journal-recovery.ts";
import type { JournalWriter } from "./journal-writer.ts";
import type { Signer } from "../native-crypto.ts";
import { Nonces } from "./nonces.ts";
import { toOutcomeError } from "./outcome-error.ts";
import { Overseer } from "./overseer.ts";
import {
  type Inclusion,
  PendingTransaction,
  type TransactionTooLarge,
  type TransactionRequest,
  transferOfNothing,
} from "./pending-transaction.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import type { RpcFailure } from "../endpoint/rpc-failure.ts";
import { Settlement } from "./settlement.ts";
import { TransactionQueue } from "./transaction-queue.ts";
import { Transmitter } from "./transmitter.ts";

/** How long an endpoint that cannot be reached is tried before what nobody has is taken back. */
const reachWithinMs = 5000;
const retryMs = 200;
/** Signed transactions that no block is known to hold; further ones wait. */
const inFlightMax = 256;

export interface TransactionSenderOptions {
  readonly rpc: Rpc;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signer: Signer;
  readonly chainId: number;
  /** Whose logs count. */
  readonly registry: Address;
  readonly fees: FeePolicy;
  /** Left out where waiting transactions end with this process. */
  readonly journal: JournalWriter | undefined;
  /** How long a caller waits for the fate. */
  readonly deadlineMs: number;
  /** How long a transaction waits in the endpoint's pool before it offers more. */
  readonly feeBumpAfterMs: number;
  /** The newest block heard of. */
  readonly head: () => number;
  /** The newest block whose logs were given to `onRound`. */
  readonly readUpTo: () => number;
  /** Whether a block up to there is on the chain that was read. */
  readonly isRead: (block: BlockRef) => Promise<boolean>;
  /** Called when a new block is likely. */
  readonly onSent: () => void;
  /** Called when a new block should have been heard of by now. */
  readonly onOverdue: () => void;
  /** Asks how much gas a transaction takes that had too little. */
  readonly estimateGas: (request: TransactionRequest) => Promise<number>;
  /** What a caller is told whose transaction nobody took. */
  readonly unreachable: () => BrokerError;
  /** Whether a nonce that the chain lacks belongs to a transaction which somebody else sends again. */
  readonly isKept: (nonce: number) => boolean;
}

/**
 * Sends transactions in the order of the calls, several at once, and learns the fate of each. A caller waits no longer than its deadline;
 * the transaction stays under care until its fate can no longer change, over restarts where there is a journal.
 */
export class TransactionSender {
  readonly #options: TransactionSenderOptions;
  readonly #queue = new TransactionQueue();
  readonly #inFlight = new InFlight();
  readonly #nonces = new Nonces();
  readonly #recovery: JournalRecovery;
  readonly #transmitter: Transmitter;
  readonly #overseer: Overseer;
  readonly settlement: Settlement;
  readonly #nonceTrouble: ReportedTrouble;
  readonly #abortListeners = new AbortListeners<PendingTransaction>((pending) => this.#giveUp(pending));
  #calls = 0;
  #isAsking = false;
  #isStopped = false;
  #isEnded = false;

  constructor(options: TransactionSenderOptions) {
    this.#options = options;
    this.#nonceTrouble = new ReportedTrouble(options.logger, "nonce not read, trying again", "nonce read again");
    const inFlight = this.#inFlight;
    this.#recovery = new JournalRecovery({ ...options, adopt: (pending) => this.#adopt(pending) });
    this.settlement = new Settlement({ ...options, inFlight, queue: this.#queue, recovery: this.#recovery });
    this.#transmitter = new Transmitter({
      ...options,
      inFlight,
      onTaken: () => options.onSent(),
      onForgotten: () => this.#overseer.onForgotten(),
      onUnanswered: (pending) => this.#onUnanswered(pending),
      onRefused: (pending, failure) => this.#onRefused(pending, failure),
    });
    this.#overseer = new Overseer({
      ...options,
      inFlight,
      transmitter: this.#transmitter,
      onIncluded: (pending, inclusion) => this.#onIncluded(pending, inclusion),
      onReverted: (pending, revert) => this.#onReverted(pending, revert),
      onReplaced: (pending) => this.#onReplaced(pending),
      onGap: (nonces) => this.#fillGap(nonces),
    });
  }

  /** Takes up what an earlier run has left in the journal. */
  async start(): Promise<void> {
    this.#nonces.atLeast(await this.#recovery.start());
  }

  /** Waits until every caller has an answer or `signal` aborts: then fates stay unknown. What the journal has, a later run takes up. */
  async stop(signal?: AbortSignal): Promise<void> {
    this.#isStopped = true;
    const waited = [...this.#queue.all(), ...this.#inFlight.all()].filter(({ isAnswered }) => !isAnswered);
    const giveUpAll = (): void => {
      for (const pending of waited) this.#giveUp(pending);
    };
    if (signal?.aborted === true) giveUpAll();
    else signal?.addEventListener("abort", giveUpAll, { once: true });
    await Promise.allSettled(waited.map(({ outcome }) => outcome));
    this.#isEnded = true;
    this.#overseer.stop();
    await this.#options.journal?.idle();
  }

  /** @throws TransactionTooLarge, or BrokerError 200202, 200201, 200205 as the Ledger port has them. */
  async send(request: TransactionRequest, signal: AbortSignal): Promise<Inclusion> {
    if (this.#isStopped) throw new BrokerError("chainUnreachable", { details: "the ledger is stopped" });
    if (signal.aborted) throw new BrokerError("transactionFailed", { details: "given up before it was sent" });
    const pending = this.#create(request);
    const cancelDeadline = this.#options.clock.after(this.#options.deadlineMs, () => this.#giveUp(pending));
    this.#abortListeners.add(signal, pending);
    pending.release = () => {
      cancelDeadline();
      this.#abortListeners.remove(signal, pending);
    };
    this.#queue.add(pending);
    this.#pump();
    return pending.outcome;
  }

  /** Takes what new blocks say about our transactions. */
  onRound(round: Pick<Round, "logs">): void {
    this.#overseer.onRound(round);
    this.#recovery.letGo(this.#options.readUpTo());
  }

  /** Blocks after `blockNumber` are no longer on the chain: what they held is sent again where it does not come back by itself. */
  onReorganised(blockNumber: number): void {
    this.#overseer.onReorganised(blockNumber);
    this.#recovery.onReorganised(blockNumber);
  }

  #create(request: TransactionRequest): PendingTransaction {
    this.#calls += 1;
    const now = this.#options.clock.monotonic();
    return new PendingTransaction(request, {
      at: now,
      order: this.#calls,
      lookUpAt: this.#overseer.firstLookUpAt(now),
    });
  }

  /** Signs and sends what waits, in order. Nothing here waits, so that calls keep their order. */
  #pump(): void {
    while (!this.#queue.isEmpty && this.#inFlight.unseen < inFlightMax) {
      if (!this.#nonces.isKnown) {
        void this.#askNonce();
        return;
      }
      const pending = this.#queue.shift();
      if (pending === undefined) return;
      pending.nonce = this.#nonces.take();
      void this.#sign(pending);
    }
  }

  #sign(pending: PendingTransaction): Promise<void> {
    const recorded = this.#transmitter.sign(pending, this.#options.fees.current());
    this.#overseer.watch();
    return this.#survive(recorded);
  }

  /** A journal that cannot be written ends the process (decision 4); until then callers are told that nothing is known. */
  async #survive(written: Promise<void> | undefined): Promise<void> {
    await written?.catch(() => {}); // Who writes the journal has told of it.
  }

  /** Tried again as long as somebody may be told soon that nobody has it, and then by the overseer. */
  #onUnanswered(pending: PendingTransaction): void {
    this.#nonces.doubt();
    const isLate = this.#options.clock.monotonic() - pending.at >= reachWithinMs;
    if (isLate && pending.isRetractable) this.#takeBackAll(pending);
    if (this.#isEnded || pending.isDone || (isLate && pending.reach !== "nowhere")) return;
    this.#options.clock.after(retryMs, () => {
      if (!this.#isEnded) void this.#transmitter.send(pending);
    });
  }

  #onRefused(pending: PendingTransaction, failure: RpcFailure): void {
    pending.refusal = failure;
    if (failure.kind === "underpriced") void this.#overseer.offerMore(pending);
    else if (!pending.isRetractable) this.#giveWay(pending, failure);
    else if (failure.kind === "nonce-too-high") return;
    else if (failure.kind === "nonce-too-low" || failure.kind === "replacement-underpriced") this.#onReplaced(pending);
    else if (failure.kind === "gas-too-low" && !pending.isEstimated) void this.#signWithMoreGas(pending);
    else if (!pending.isFiller) this.#takeBack(pending, toOutcomeError(failure));
  }

  /**
   * What somebody may have, and is refused for what it is, would keep its nonce from all behind it: a transfer of nothing is offered in its
   * place. At most one of the two comes in, and nobody waits for it. A form that an endpoint has stays, where a newer one was refused.
   */
  #giveWay(pending: PendingTransaction, { kind }: RpcFailure): void {
    const isHopeless = kind === "too-large" || kind === "gas-too-low";
    if (!isHopeless || pending.fallBack() || !pending.isAnswered || pending.isFiller) return;
    pending.request = transferOfNothing(this.#options.signer.address);
    pending.isFiller = true;
    this.#options.logger.warn("transaction given up, its nonce filled", { nonce: pending.nonce, reason: kind });
    void this.#sign(pending);
  }

  /** Its nonce belongs to another transaction, one that somebody else signed with our key. It is signed anew with the next. */
  #onReplaced(pending: PendingTransaction): void {
    const { nonce } = pending;
    if (nonce === undefined) return;
    this.#leaveFlight(pending);
    this.#nonces.atLeast(nonce + 1);
    this.#nonces.doubt();
    if (pending.isFiller || pending.order === 0) {
      pending.isDone = true;
      this.#options.logger.warn("nonce used by somebody else", { nonce });
    } else {
      this.#options.logger.warn("nonce used by somebody else, signing anew", { nonce });
      this.#queue.add(pending);
    }
    this.#pump();
  }

  /** Takes it out of flight with its entry in the journal. No form of it can come in any more. */
  #leaveFlight(pending: PendingTransaction): void {
    const { nonce } = pending;
    this.#inFlight.delete(pending);
    pending.forgetNonce();
    if (nonce !== undefined) void this.#survive(this.#options.journal?.remove([nonce]));
  }

  async #signWithMoreGas(pending: PendingTransaction): Promise<void> {
    const { nonce } = pending;
    if ((await this.#raiseGas(pending)) && !pending.isDone && pending.nonce === nonce) void this.#sign(pending);
  }

  async #raiseGas(pending: PendingTransaction): Promise<boolean> {
    pending.isEstimated = true;
    try {
      pending.request = { ...pending.request, gas: await this.#options.estimateGas(pending.request) };
      return true;
    } catch (error) {
      this.#options.logger.warn("gas not estimated", { error });
      return false;
    }
  }

  /** It ran out of gas, or was reverted for what it asks. Nothing of it stands on the chain. */
  #onReverted(
    pending: PendingTransaction,
    revert: { readonly blockNumber: number; readonly isOutOfGas: boolean },
  ): void {
    this.#leaveFlight(pending);
    const error = new BrokerError("transactionFailed", { details: `reverted in block ${revert.blockNumber}` });
    const isHopeless = !revert.isOutOfGas || pending.isEstimated || pending.isAnswered;
    if (isHopeless) this.#end(pending, error);
    else void this.#sendAgainWithMoreGas(pending, error);
  }

  async #sendAgainWithMoreGas(pending: PendingTransaction, error: BrokerError): Promise<void> {
    if (!(await this.#raiseGas(pending)) || pending.isAnswered) {
      this.#end(pending, error);
      return;
    }
    this.#queue.add(pending);
    this.#pump();
  }

  #end(pending: PendingTransaction, error: BrokerError): void {
    pending.isDone = true;
    pending.reject(error);
    this.#pump();
  }

  #onIncluded(pending: PendingTransaction, inclusion: Inclusion): void {
    pending.isDone = true;
    this.#inFlight.delete(pending);
    this.#recovery.keep(pending, inclusion.blockNumber);
    pending.resolve(inclusion);
    this.#pump();
  }

  /** Its time is over, or its caller has gone. */
  #giveUp(pending: PendingTransaction): void {
    if (pending.isAnswered) return;
    if (pending.nonce === undefined) {
      this.#queue.remove(pending);
      this.#end(pending, this.#options.unreachable());
    } else if (!pending.isRetractable) pending.reject(new BrokerError("transactionTimeout"));
    else if (pending.refusal !== undefined) this.#takeBack(pending, toOutcomeError(pending.refusal));
    else if (!this.#takeBackAll(pending)) this.#takeBack(pending, this.#options.unreachable());
  }

  /** Takes back a transaction with all behind it, provided that nobody was reached with any of them. */
  #takeBackAll(first: PendingTransaction): boolean {
    if (first.nonce === undefined) return false;
    const all = this.#inFlight.from(first.nonce);
    if (!all.every((pending) => pending.isRetractable && pending.refusal === undefined)) return false;
    for (const pending of all) this.#takeBack(pending, this.#options.unreachable());
    return true;
  }

  /** Takes back what surely nobody has. Its nonce must not stay open where others come behind it. */
  #takeBack(pending: PendingTransaction, error: BrokerError | TransactionTooLarge): void {
    const { nonce } = pending;
    if (nonce === undefined) return;
    const { journal } = this.#options;
    this.#inFlight.delete(pending);
    pending.isDone = true;
    const taken = this.#nonces.giveBack(nonce) ? journal?.remove([nonce]) : this.#fill(nonce);
    if (journal === undefined) pending.reject(error);
    else void this.#rejectAfter(taken, pending, error);
    this.#pump();
  }

  /** The caller is told once a restart would not send it either. */
  async #rejectAfter(
    taken: Promise<void> | undefined,
    pending: PendingTransaction,
    error: BrokerError | TransactionTooLarge,
  ): Promise<void> {
    try {
      await taken;
      pending.reject(error);
    } catch {
      pending.reject(new BrokerError("transactionTimeout"));
    }
  }

  /** Uses up a nonce with a transfer of nothing to ourselves. */
  #fill(nonce: number): Promise<void> {
    const filler = this.#create(transferOfNothing(this.#options.signer.address));
    filler.isFiller = true;
    filler.isAnswered = true;
    filler.nonce = nonce;
    this.#options.logger.info("nonce filled", { nonce });
    return this.#sign(filler);
  }

  /** The chain lacks these nonces, and they are none of those in flight: it lost what it had, or what held them was never sent. */
  #fillGap(nonces: readonly number[]): void {
    const kept = this.#recovery.takeUp(nonces);
    for (const nonce of nonces) if (!kept.includes(nonce) && !this.#options.isKept(nonce)) void this.#fill(nonce);
  }

  #adopt(pending: PendingTransaction): void {
    if (pending.nonce === undefined || this.#inFlight.has(pending.nonce)) return;
    this.#inFlight.adopt(pending);
    this.#overseer.watch();
  }

  async #askNonce(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { rpc, signer, clock } = this.#options;
    try {
      this.#nonces.onCount(await rpc.transactionCount(signer.address, "pending"));
      this.#nonceTrouble.done();
      this.#isAsking = false;
      this.#pump();
    } catch (error) {
      this.#nonceTrouble.failed(error);
      clock.after(retryMs, () => {
        this.#isAsking = false;
        this.#pump();
      });
      this.#expireQueue();
    }
  }

  /** Answers what has waited for the endpoint long enough; it was never signed. */
  #expireQueue(): void {
    const oldest = this.#options.clock.monotonic() - reachWithinMs;
    for (const pending of this.#queue.all()) if (pending.at <= oldest) this.#giveUp(pending);
  }
}
