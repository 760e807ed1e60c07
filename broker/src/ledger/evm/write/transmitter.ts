import { type Fees, type Signer, signTransaction } from "@stele/eth/node";
import { BrokerError } from "@stele/wire";
import type { Hash } from "../../../domain/topic.ts";
import { BoundedLog } from "../../../lib/bounded-log.ts";
import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import { MayNotStartError } from "../../../ports/ledger.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import { isUnanswered, RpcFailure, toRpcFailure } from "../endpoint/rpc-failure.ts";
import type { InFlight } from "./in-flight.ts";
import type { JournalWriter } from "./journal-writer.ts";
import type { PendingTransaction } from "./pending-transaction.ts";
import { isRetractable, type Variant } from "./transaction-state.ts";
import type { TransactionEvent } from "./transaction-transition.ts";

export interface TransmitterOptions {
  readonly rpc: Rpc;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signer: Signer;
  readonly chainId: number;
  readonly inFlight: InFlight;
  readonly journal: JournalWriter | undefined;
  /** The newest known block. */
  readonly head: () => number;
  readonly dispatch: (pending: PendingTransaction, event: TransactionEvent) => void;
}

/** Refusals that name the size, the gas or the fee for the gas. Chain nodes check these before anything else. */
const sizeRefusals: ReadonlySet<RpcFailure["kind"]> = new Set(["too-large", "gas-too-low", "fee-capped"]);

/** Maximum number of log lines about refused transactions in a burst: busy publishers cause one after another while the signer has no funds. */
const refusedLinesMax = 100;
/** Number of further lines about refused transactions that each second allows. */
const refusedLinesPerSecondMax = 1;

/** Signs transactions and sends each to the endpoint once the journal has it. */
export class Transmitter {
  readonly #options: TransmitterOptions;
  readonly #refused: BoundedLog;

  constructor(options: TransmitterOptions) {
    this.#options = options;
    const lines = { atOnce: refusedLinesMax, perSecond: refusedLinesPerSecondMax };
    this.#refused = new BoundedLog({ ...options, lines });
  }

  /**
   * Signs a version of a transaction that has a nonce, and sends the version once the journal has it. Resolves with whether the journal has the version; never
   * rejects. Without a journal, returns undefined and waits for nothing, so that calls keep their order.
   */
  sign(pending: PendingTransaction, fees: Fees): Promise<boolean> | undefined {
    const { inFlight, journal, signer, chainId, clock, head, dispatch } = this.#options;
    const { nonce, request } = pending.state;
    const { to, data, gas } = request;
    if (nonce === undefined) throw new Error("a transaction is signed with a nonce");
    const signed = signTransaction({ chainId, nonce, fees, gas, to, data }, signer);
    const variant = { fees, signedAt: clock.monotonic(), signedAtBlock: head(), ...signed };
    dispatch(pending, { kind: "signed", variant, isRecorded: journal === undefined });
    inFlight.add(pending);
    if (journal !== undefined) return this.#record(pending, journal);
    void this.send(pending);
    return undefined;
  }

  /** Sends the newest version, again if it was sent before. A version that the journal lacks is recorded first. */
  async send(pending: PendingTransaction): Promise<void> {
    const { variants, isDone, isBusy, isRecorded, nonce } = pending.state;
    const [newest] = variants;
    if (newest === undefined || isDone || isBusy) return;
    const { dispatch, journal } = this.#options;
    if (!isRecorded) {
      if (journal !== undefined) await this.#record(pending, journal);
      return;
    }
    if (isRetractable(pending.state) && pending.state.request.mayStart?.() === false) {
      dispatch(pending, { kind: "retracted", reason: mayNotStart() });
      return;
    }
    dispatch(pending, { kind: "began" });
    const failure = await this.#try(newest);
    const isRefused = failure !== undefined && failure.kind !== "already-known" && !isUnanswered(failure);
    if (isRefused && !pending.state.isDone) this.#refused.warn("transaction refused", { nonce, error: failure });
    if (isSizeAccepted(failure)) pending.state.request.onAccepted?.();
    dispatch(pending, { kind: "sent", hash: newest.hash, failure });
  }

  /** If the endpoint refused the next transaction because this one's nonce was missing, sends the next transaction now instead of at its next check. */
  sendNext({ state: { nonce } }: PendingTransaction): void {
    const next = nonce === undefined ? undefined : this.#options.inFlight.findNonce(nonce + 1);
    if (next?.state.refusal?.kind === "nonce-too-high") void this.send(next);
  }

  /** Whether the journal has the newest version now. */
  async #record(pending: PendingTransaction, journal: JournalWriter): Promise<boolean> {
    const { dispatch } = this.#options;
    const [newest] = pending.state.variants;
    if (newest === undefined) throw new Error("only a signed transaction is recorded");
    const { hash } = newest;
    dispatch(pending, { kind: "began" });
    const isWritten = await journal.record(pending.state).then(
      () => true,
      () => false, // The journal writer logs it.
    );
    dispatch(pending, { kind: "recorded", hash, isWritten });
    return isWritten;
  }

  async #try({ raw, hash }: Variant): Promise<RpcFailure | undefined> {
    try {
      await this.#options.rpc.sendRaw(raw);
      return undefined;
    } catch (error) {
      const failure = toRpcFailure(error);
      return failure.kind === "nonce-too-low" ? this.#checkUsedNonce(hash, failure) : failure;
    }
  }

  /** Checks whether the transaction itself has used its nonce: a proxy may send it twice and return the second answer. Then it must not get another nonce. */
  async #checkUsedNonce(hash: Hash, failure: RpcFailure): Promise<RpcFailure> {
    try {
      const isOwn = await this.#options.rpc.knows(hash, { isSent: true });
      return isOwn ? new RpcFailure("already-known", failure.message, { cause: failure }) : failure;
    } catch (error) {
      return new RpcFailure("connection", failure.message, { cause: error });
    }
  }
}

/** Whether the endpoint answered, and its answer shows that the size is not the obstacle. */
function isSizeAccepted(failure: RpcFailure | undefined): boolean {
  return failure === undefined || !(isUnanswered(failure) || sizeRefusals.has(failure.kind));
}

function mayNotStart(): BrokerError {
  const details = "this node was not a member of its cluster for a while";
  return new BrokerError("transactionFailed", { details, cause: new MayNotStartError() });
}
