import { BrokerError, isBrokerError } from "@stele/wire";
import type { Clock } from "../../../ports/clock.ts";
import { isFullPool, isRevert, isUnanswered, RpcFailure, toBrokerError, toReadError } from "../endpoint/rpc-failure.ts";
import type { InFlight } from "./in-flight.ts";
import type { PendingTransaction } from "./pending-transaction.ts";
import type { Rejection, TransactionTooLarge } from "./transaction-state.ts";

export interface TransactionTroubleOptions {
  readonly clock: Clock;
  readonly inFlight: InFlight;
  /** How long a caller waits for its outcome, in milliseconds. */
  readonly deadlineMs: number;
  /** What the operator checks while a transaction waits. */
  readonly waitRemedy: string;
  /** The error for a caller whose transaction no endpoint accepted. */
  readonly unreachable: () => BrokerError;
}

/** The remedy of a refusal with an unknown message: the node may lack the method, or take only transactions of listed accounts. */
const unknownRemedy = "Check whether the endpoint takes transactions of this account";

const nonceRemedy = "Use an endpoint that answers eth_getTransactionCount with the tag pending";
/** How long a refusal counts if it may be over, in milliseconds: the broker learns that it is over only when somebody publishes. */
const unknownMs = 300_000;

interface Remedy {
  readonly reason: string;
  /** Whether the message of the refusal is known, so that the remedy fits. */
  readonly isKnown: boolean;
}

/** Why this node's transactions are not committed, although the chain answers. */
export class TransactionTrouble {
  readonly #options: TransactionTroubleOptions;
  /**
   * The newest refusal that an operator has to remedy. `since`: the first one since the last success. `until`: when it stops counting, on the monotonic clock.
   */
  #refusal: { readonly since: string; readonly reason: string; readonly until: number } | undefined;
  /** The refusal of the latest send, if the pool was full. */
  #fullPool: RpcFailure | undefined;
  /** Why the endpoint refuses to return the next nonce, and since when. `until`: when that stops counting, on the monotonic clock. */
  #nonceRefusal: { readonly since: string; readonly failure: RpcFailure; readonly until: number } | undefined;

  constructor(options: TransactionTroubleOptions) {
    this.#options = options;
  }

  /** Call it when a send got no answer or nobody processed it. */
  onUnanswered(failure: RpcFailure): void {
    this.#fullPool = isFullPool(failure) ? failure : undefined;
  }

  /** Call it when the request for the next nonce failed; without a failure, when it succeeded. */
  onNonce(failure?: RpcFailure): void {
    const isRefused = failure !== undefined && !isUnanswered(failure);
    if (failure !== undefined) this.#fullPool = undefined;
    const since = this.#ifLasting(this.#nonceRefusal)?.since ?? this.#now();
    this.#nonceRefusal = isRefused ? { since, failure, until: this.#options.clock.monotonic() + unknownMs } : undefined;
  }

  /** Call it when a transaction was rejected; returns the error for its caller. A refusal that concerns only one transaction does not count. */
  onRejected(rejection: Rejection): BrokerError | TransactionTooLarge {
    const error = rejection === "unreachable" ? this.#unreachable() : rejection;
    const remedy = findRemedy(error);
    if (remedy === undefined) return error;
    const { reason, isKnown } = remedy;
    const until = isKnown ? Number.POSITIVE_INFINITY : this.#options.clock.monotonic() + unknownMs;
    this.#refusal = { since: this.#ifLasting(this.#refusal)?.since ?? this.#now(), reason, until };
    return error;
  }

  /** Call it when an endpoint accepted a transaction as new, or a block includes one. An endpoint whose pool is full still knows those in it. */
  onTaken(): void {
    this.#refusal = undefined;
    this.#fullPool = undefined;
  }

  /** The trouble in words; undefined while there is none, as far as known. */
  find(): string | undefined {
    const { clock, inFlight, deadlineMs, waitRemedy } = this.#options;
    const since = clock.monotonic() - deadlineMs;
    // A restart or a reorg brings back old transactions. Most are in a block, or are soon.
    const late = inFlight.all().filter(({ trackedSince }) => trackedSince <= since);
    // The chain includes no later nonce before the lowest one.
    const [first] = late.toSorted((left, right) => (left.state.nonce ?? 0) - (right.state.nonce ?? 0));
    if (first !== undefined) return `${describe(first, clock)}: ${this.#findRefusal(first) ?? waitRemedy}`;
    const unread = this.#ifLasting(this.#nonceRefusal);
    if (unread !== undefined)
      return `the chain does not return the signer's next nonce (since ${unread.since}): ${unread.failure.message}. ${nonceRemedy}`;
    const refusal = this.#ifLasting(this.#refusal);
    return refusal && `the chain refuses transactions (since ${refusal.since}): ${refusal.reason}`;
  }

  /** Why an endpoint refused a transaction that no block has, with the remedy. Ignores a full pool if an endpoint has the transaction. */
  #findRefusal({ state: { refusal, reach, seenIn } }: PendingTransaction): string | undefined {
    const isTaken = reach === "taken";
    const found = refusal ?? (isTaken ? undefined : this.#fullPool);
    // The endpoint may lack earlier nonces, or count the nonce of the transaction itself as used. No remedy for the account would help.
    if (seenIn !== undefined || found?.kind === "nonce-too-low" || found?.kind === "nonce-too-high") return undefined;
    const remedy = found && findRemedy(toBrokerError(found));
    // With a message that we do not know, an endpoint may refuse a transaction because it already has it.
    return isTaken && remedy?.isKnown === false ? undefined : remedy?.reason;
  }

  #ifLasting<T extends { readonly until: number }>(trouble: T | undefined): T | undefined {
    return trouble !== undefined && this.#options.clock.monotonic() < trouble.until ? trouble : undefined;
  }

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString();
  }

  #unreachable(): BrokerError {
    if (this.#nonceRefusal !== undefined) return toReadError(this.#nonceRefusal.failure);
    return this.#fullPool === undefined ? this.#options.unreachable() : toBrokerError(this.#fullPool);
  }
}

function describe({ at, state: { nonce, seenIn } }: PendingTransaction, clock: Clock): string {
  // In whole seconds, so that the text stays the same while the wall clock drifts from the monotonic one.
  const since = Math.round((clock.now() - (clock.monotonic() - at)) / 1_000) * 1_000;
  const waits = `(since ${new Date(since).toISOString()}), so publishes time out`;
  return seenIn === undefined
    ? `no block has the transaction with nonce ${nonce} ${waits}`
    : `block ${seenIn}, with the transaction of nonce ${nonce}, is not final, or its receipt is missing ${waits}`;
}

/** A refusal that may concern all transactions, with its remedy. Undefined for a refusal for its size or by the contract, and for other errors. */
function findRemedy(error: unknown): Remedy | undefined {
  if (!(error instanceof BrokerError) || !(error.cause instanceof RpcFailure)) return undefined;
  const { kind, message } = error.cause;
  if (error.hints.length > 0) return { reason: [message, ...error.hints].join(". "), isKnown: true };
  const isOfOne = kind === "too-large" || isRevert(error.cause);
  if (isOfOne || !isBrokerError(error, "transactionFailed")) return undefined;
  return { reason: `${message}. ${unknownRemedy}`, isKnown: false };
}
