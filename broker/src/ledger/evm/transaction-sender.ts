import { BrokerError } from "@stele/wire";
import type { Address, Hash } from "../../domain/topic.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import { AbortListeners } from "./abort-listeners.ts";
import type { Round } from "./block-reader.ts";
import type { FeePolicy } from "./fee-policy.ts";
import type { Signer } from "./native-crypto.ts";
import { type ContractLog, parseLog } from "./parse-log.ts";
import { type Inclusion, PendingTransaction, type TransactionRequest } from "./pending-transaction.ts";
import type { Receipt, Rpc } from "./rpc.ts";
import { isUnanswered, type RpcFailure, toBrokerError, toRpcFailure } from "./rpc-failure.ts";
import { signTransaction } from "./transaction.ts";

/** A transaction older than this without a sign of it is asked for by its receipt, and sent again when there is none. */
const lookUpAfterMs = 1000;
/** Each further look waits as long again as the transaction is old, up to this. */
const lookUpPauseMsMax = 8000;
const tickMs = 250;
/** How long an endpoint that cannot be reached is tried. */
const reachWithinMs = 5000;
const retryMs = 200;
const plainTransferGas = 21_000;

export interface TransactionSenderOptions {
  readonly rpc: Rpc;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signer: Signer;
  readonly chainId: number;
  /** Whose logs count. */
  readonly registry: Address;
  readonly fees: FeePolicy;
  /** How long a fate is waited for. */
  readonly deadlineMs: number;
  /** The newest block whose logs were given to `onRound`. */
  readonly readUpTo: () => number;
  /** Called when a new block is likely. */
  readonly onSent: () => void;
  /** Called when a new block should have been heard of by now. */
  readonly onOverdue: () => void;
  /** Called when a transaction was included and reverted. */
  readonly onReverted: (request: TransactionRequest, receipt: Receipt) => void;
}

/** Sends transactions in the order of the calls, several at once, and learns the fate of each. Holds the one count of nonces for its key. */
export class TransactionSender {
  readonly #options: TransactionSenderOptions;
  readonly #queue: PendingTransaction[] = [];
  /** Signed and sent, in the order of their nonces. */
  readonly #pending = new Map<Hash, PendingTransaction>();
  /** Undefined when the endpoint has to be asked, which waits until nothing is under way. */
  #nonce: number | undefined;
  #isAsking = false;
  #isAskingAgain = false;
  #isStopped = false;
  #cancelTick: (() => void) | undefined;
  readonly #abortListeners = new AbortListeners<PendingTransaction>((pending) => this.#giveUp(pending));

  constructor(options: TransactionSenderOptions) {
    this.#options = options;
  }

  /** Waits until the fate of everything under way is known, its deadline passed or `signal` aborts: then the fate stays unknown. */
  async stop(signal?: AbortSignal): Promise<void> {
    this.#isStopped = true;
    const underWay = [...this.#queue, ...this.#pending.values()];
    const giveUpAll = (): void => {
      for (const pending of underWay) if (!pending.isSettled) this.#giveUp(pending);
    };
    if (signal?.aborted === true) giveUpAll();
    else signal?.addEventListener("abort", giveUpAll, { once: true });
    await Promise.allSettled(underWay.map(({ outcome }) => outcome.promise));
    this.#cancelTick?.();
  }

  /** @throws BrokerError 200202, 200201, 200205 as the Ledger port has them. */
  async send(request: TransactionRequest, signal: AbortSignal): Promise<Inclusion> {
    if (this.#isStopped) throw new BrokerError("chainUnreachable", { details: "the ledger is stopped" });
    if (signal.aborted) throw new BrokerError("transactionFailed", { details: "given up before it was sent" });
    const now = this.#options.clock.now();
    const pending = new PendingTransaction(request, { at: now, lookUpAt: now + lookUpAfterMs });
    const cancelDeadline = this.#options.clock.after(this.#options.deadlineMs, () => this.#giveUp(pending));
    this.#abortListeners.add(signal, pending);
    pending.release = () => {
      cancelDeadline();
      this.#abortListeners.remove(signal, pending);
    };
    this.#queue.push(pending);
    this.#pump();
    return pending.outcome.promise;
  }

  /** Takes what new blocks say about our transactions. */
  onRound(round: Pick<Round, "logs">): void {
    let newestNonce = -1;
    const seen = new Set<PendingTransaction>();
    for (const log of round.logs) {
      const pending = this.#pending.get(log.transactionHash);
      if (pending?.signed === undefined) continue;
      pending.logs.push(log);
      seen.add(pending);
      newestNonce = Math.max(newestNonce, pending.signed.nonce);
    }
    for (const pending of seen) {
      const [first] = pending.logs;
      const { logsExpected } = pending.request;
      if (first === undefined || (logsExpected !== undefined && logsExpected !== pending.logs.length)) continue;
      this.#resolve(pending, { blockNumber: first.blockNumber, logs: pending.logs });
    }
    for (const pending of this.#pending.values()) {
      const isPassed = (pending.signed?.nonce ?? newestNonce) < newestNonce;
      if (isPassed || seen.has(pending) || pending.request.logsExpected === undefined) void this.#lookUp(pending);
    }
  }

  /** Signs and sends what waits, in order. Nothing here waits, so that calls keep their order. */
  #pump(): void {
    while (this.#queue.length > 0) {
      if (this.#nonce === undefined) {
        void this.#askNonce();
        return;
      }
      const pending = this.#queue.shift();
      if (pending === undefined) return;
      this.#sign(pending, this.#nonce);
      this.#nonce += 1;
      void this.#transmit(pending);
    }
  }

  #sign(pending: PendingTransaction, nonce: number): void {
    const { chainId, fees, signer, clock } = this.#options;
    const { to, data, gas } = pending.request;
    const signed = signTransaction({ chainId, nonce, fees: fees.current(), gas, to, data }, signer);
    pending.signed = { ...signed, nonce };
    this.#pending.set(signed.hash, pending);
    this.#cancelTick ??= clock.after(tickMs, () => this.#tick());
  }

  async #transmit(pending: PendingTransaction): Promise<void> {
    const { signed } = pending;
    if (signed === undefined || pending.isSettled) return;
    try {
      await this.#options.rpc.sendRaw(signed.raw);
      pending.isAccepted = true;
      this.#options.onSent();
    } catch (error) {
      await this.#onRefusal(pending, toRpcFailure(error));
    }
  }

  async #onRefusal(pending: PendingTransaction, failure: RpcFailure): Promise<void> {
    if (pending.isSettled) return;
    if (failure.kind === "already-known") {
      pending.isAccepted = true;
      return;
    }
    if (isUnanswered(failure)) {
      pending.isUncertain = true;
      if (this.#isUnreachable(pending)) this.#giveUp(pending);
      else this.#options.clock.after(retryMs, () => void this.#transmit(pending));
      return;
    }
    this.#options.logger.warn("transaction refused", { error: failure });
    if (failure.kind === "underpriced") await this.#refreshFees();
    if (failure.kind === "nonce-too-low") await this.#onNonceTaken(pending, failure);
    else if (!pending.isAccepted && !pending.isUncertain) this.#refuse(pending, failure);
  }

  /** Some transaction with this nonce is included: ours, sent before, or one that somebody else signed with our key. */
  async #onNonceTaken(pending: PendingTransaction, failure: RpcFailure): Promise<void> {
    const { signed } = pending;
    if (signed === undefined || (await this.#isKnown(signed.hash))) {
      pending.isAccepted = true;
      return;
    }
    this.#nonce = undefined;
    this.#reject(pending, toBrokerError(failure));
  }

  /** Undecided counts as known: then the receipt or the deadline decides. */
  async #isKnown(hash: Hash): Promise<boolean> {
    try {
      return await this.#options.rpc.knows(hash);
    } catch {
      return true;
    }
  }

  /** The endpoint never had it and will not take it. Its nonce must not stay open, or those behind it wait for ever. */
  #refuse(pending: PendingTransaction, failure: RpcFailure): void {
    if (pending.isSettled) return;
    const nonce = pending.signed?.nonce;
    if (nonce === undefined || failure.kind === "replacement-underpriced") this.#nonce = undefined;
    else if (this.#nonce === nonce + 1) this.#nonce = nonce;
    else if (this.#nonce !== undefined) void this.#fill(nonce);
    this.#reject(pending, toBrokerError(failure));
  }

  /** Uses up a nonce with a transfer of nothing to ourselves. */
  async #fill(nonce: number): Promise<void> {
    const { chainId, fees, signer, rpc, logger } = this.#options;
    const call = { gas: plainTransferGas, to: signer.address, data: new Uint8Array(0) };
    try {
      await rpc.sendRaw(signTransaction({ chainId, nonce, fees: fees.current(), ...call }, signer).raw);
    } catch (error) {
      this.#nonce = undefined;
      logger.warn("nonce not filled", { nonce, error });
    }
  }

  async #refreshFees(): Promise<void> {
    try {
      await this.#options.fees.refresh();
    } catch (error) {
      this.#options.logger.warn("gas price not read", { error });
    }
  }

  async #askNonce(): Promise<void> {
    if (this.#isAsking || this.#isAskingAgain || this.#pending.size > 0) return;
    this.#isAsking = true;
    const { rpc, signer, logger } = this.#options;
    try {
      this.#nonce = await rpc.transactionCount(signer.address, "pending");
    } catch (error) {
      logger.warn("nonce not read, trying again", { error });
      this.#askAgain();
    } finally {
      this.#isAsking = false;
    }
    if (this.#nonce !== undefined) this.#pump();
  }

  #askAgain(): void {
    this.#isAskingAgain = true;
    this.#options.clock.after(retryMs, () => {
      this.#isAskingAgain = false;
      this.#pump();
    });
    for (const pending of this.#queue.filter((one) => this.#isUnreachable(one))) this.#giveUp(pending);
  }

  #tick(): void {
    const { clock, onOverdue } = this.#options;
    this.#cancelTick = this.#pending.size === 0 ? undefined : clock.after(tickMs, () => this.#tick());
    const now = clock.now();
    for (const pending of this.#pending.values()) {
      if (now < pending.lookUpAt) continue;
      pending.lookUpAt = now + Math.min(now - pending.at, lookUpPauseMsMax);
      onOverdue();
      void this.#lookUp(pending).then(async (isFound) => (isFound ? undefined : this.#transmit(pending)));
    }
  }

  /** Learns the fate from the receipt. Answers whether there is one, true also while it is not known. */
  async #lookUp(pending: PendingTransaction): Promise<boolean> {
    const { signed } = pending;
    if (signed === undefined || pending.isSettled) return true;
    try {
      const receipt = await this.#options.rpc.receipt(signed.hash);
      // A block that is not read yet is not final yet either; its logs come by themselves.
      if (receipt !== undefined && receipt.blockNumber <= this.#options.readUpTo()) this.#settle(pending, receipt);
      return receipt !== undefined;
    } catch (error) {
      this.#options.logger.warn("receipt not read", { error });
      return true;
    }
  }

  #settle(pending: PendingTransaction, receipt: Receipt): void {
    if (!receipt.succeeded) {
      this.#options.onReverted(pending.request, receipt);
      this.#reject(
        pending,
        new BrokerError("transactionFailed", { details: `reverted in block ${receipt.blockNumber}` }),
      );
      return;
    }
    this.#resolve(pending, { blockNumber: receipt.blockNumber, logs: this.#parse(receipt) });
  }

  #parse(receipt: Receipt): ContractLog[] {
    return receipt.logs.flatMap((log) => parseLog(log, this.#options.registry) ?? []);
  }

  /** Its time is over, or its caller has gone. */
  #giveUp(pending: PendingTransaction): void {
    if (pending.signed === undefined) {
      this.#queue.splice(this.#queue.indexOf(pending), 1);
      this.#reject(pending, new BrokerError("chainUnreachable", { details: "given up before it was sent" }));
      return;
    }
    // Whether the endpoint still has it is not known: the next nonce has to be asked for.
    this.#nonce = undefined;
    this.#reject(pending, new BrokerError(pending.isAccepted ? "transactionTimeout" : "chainUnreachable"));
  }

  #isUnreachable(pending: PendingTransaction): boolean {
    return this.#options.clock.now() - pending.at >= reachWithinMs;
  }

  #resolve(pending: PendingTransaction, inclusion: Inclusion): void {
    if (this.#end(pending)) pending.outcome.resolve(inclusion);
  }

  #reject(pending: PendingTransaction, error: BrokerError): void {
    if (this.#end(pending)) pending.outcome.reject(error);
    this.#pump();
  }

  #end(pending: PendingTransaction): boolean {
    if (pending.isSettled) return false;
    pending.isSettled = true;
    pending.release();
    if (pending.signed !== undefined) this.#pending.delete(pending.signed.hash);
    if (this.#nonce === undefined) this.#pump();
    return true;
  }
}
