import { BrokerError } from "@stele/wire";
import type { Clock } from "../../../ports/clock.ts";
import { isFullPool, isUnanswered, RpcFailure, toBrokerError, toReadError } from "../endpoint/rpc-failure.ts";
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

/** The remedy of a refusal in words that we do not know: a node may lack the method, or take no transactions of accounts that it does not list. */
const unknownRemedy = "Check whether the endpoint takes transactions of this account";

/** Why this node's transactions are not committed, although the chain answers. */
export class TransactionTrouble {
  readonly #options: TransactionTroubleOptions;
  /** The newest refusal that an operator has to remedy, and the time of the first one since the last success. */
  #refusal: { readonly since: string; readonly reason: string } | undefined;
  /** Why the latest send, or request for the next nonce, failed at an endpoint that answers: a full pool, or a refusal to return the nonce. */
  #obstacle: RpcFailure | undefined;

  constructor(options: TransactionTroubleOptions) {
    this.#options = options;
  }

  /** Call it when a send got no answer or nobody processed it, or when the request for the next nonce failed. */
  onUnanswered(failure: RpcFailure): void {
    this.#obstacle = isFullPool(failure) || !isUnanswered(failure) ? failure : undefined;
  }

  /** Call it when a transaction was rejected; returns the error for its caller. A refusal that concerns only one transaction does not count. */
  onRejected(rejection: Rejection): BrokerError | TransactionTooLarge {
    const error = rejection === "unreachable" ? this.#unreachable() : rejection;
    const reason = findRemedy(error);
    const since = this.#refusal?.since ?? new Date(this.#options.clock.now()).toISOString();
    if (reason !== undefined) this.#refusal = { since, reason };
    return error;
  }

  /** Call it when an endpoint accepted a transaction as new, or a block includes one. An endpoint whose pool is full still knows those in it. */
  onTaken(): void {
    this.#refusal = undefined;
    this.#obstacle = undefined;
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
    return this.#refusal && `the chain refuses transactions (since ${this.#refusal.since}): ${this.#refusal.reason}`;
  }

  /** Why an endpoint refused a transaction that no block has, with the remedy. A pool that has the transaction has room for it. */
  #findRefusal({ state: { refusal, reach, seenIn } }: PendingTransaction): string | undefined {
    const isTaken = reach === "taken";
    const found = refusal ?? (isTaken ? undefined : this.#obstacle);
    // An endpoint may refuse a transaction because it has it, in words that we do not know.
    if (isTaken && found?.kind === "refused") return undefined;
    return found === undefined || seenIn !== undefined ? undefined : findRemedy(toBrokerError(found));
  }

  #unreachable(): BrokerError {
    if (this.#obstacle === undefined) return this.#options.unreachable();
    return isUnanswered(this.#obstacle) ? toBrokerError(this.#obstacle) : toReadError(this.#obstacle);
  }
}

function describe({ at, state: { nonce, seenIn } }: PendingTransaction, clock: Clock): string {
  // In whole seconds, so that the text stays the same while the wall clock drifts from the monotonic one.
  const since = Math.round((clock.now() - (clock.monotonic() - at)) / 1_000) * 1_000;
  const waits = `(since ${new Date(since).toISOString()}), so publishes time out`;
  return seenIn === undefined
    ? `no block has the transaction with nonce ${nonce} ${waits}`
    : `block ${seenIn}, with the transaction of nonce ${nonce}, is not final ${waits}`;
}

/** A refusal that may concern all transactions, with its remedy; undefined for that of a size, and for an outage. */
function findRemedy(error: unknown): string | undefined {
  if (!(error instanceof BrokerError) || !(error.cause instanceof RpcFailure)) return undefined;
  const { kind, message } = error.cause;
  if (error.hints.length > 0) return [message, ...error.hints].join(". ");
  return kind === "too-large" || isUnanswered(error.cause) ? undefined : `${message}. ${unknownRemedy}`;
}
