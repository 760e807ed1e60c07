import { BrokerError } from "@stele/wire";
import type { Clock } from "../../../ports/clock.ts";
import { RpcFailure, toBrokerError } from "../endpoint/rpc-failure.ts";
import type { InFlight } from "./in-flight.ts";
import type { PendingTransaction } from "./pending-transaction.ts";

export interface TransactionTroubleOptions {
  readonly clock: Clock;
  readonly inFlight: InFlight;
  /** How long a caller waits for its outcome, in milliseconds. */
  readonly deadlineMs: number;
  /** What the operator checks while a transaction waits. */
  readonly waitRemedy: string;
}

/** Why this node's transactions are not committed, although the chain answers. */
export class TransactionTrouble {
  readonly #options: TransactionTroubleOptions;
  /** The newest refusal that an operator has to remedy, and the time of the first one since the last success. */
  #refusal: { readonly since: string; readonly reason: string } | undefined;

  constructor(options: TransactionTroubleOptions) {
    this.#options = options;
  }

  /** Call it when a transaction was rejected, with the reason. Only refusals with a remedy count: after others, the next transaction may be fine. */
  onRejected(error: unknown): void {
    const reason = findRemedy(error);
    const since = this.#refusal?.since ?? new Date(this.#options.clock.now()).toISOString();
    if (reason !== undefined) this.#refusal = { since, reason };
  }

  /** Call it when an endpoint accepted a transaction. */
  onTaken(): void {
    this.#refusal = undefined;
  }

  /** The trouble in words; undefined while there is none, as far as known. */
  find(): string | undefined {
    const { clock, inFlight, deadlineMs, waitRemedy } = this.#options;
    const since = clock.monotonic() - deadlineMs;
    // A restart or a reorg brings back old transactions. Most are in a block, or are soon.
    const late = inFlight.all().filter(({ trackedSince }) => trackedSince <= since);
    // The chain includes no later nonce before the lowest one.
    const [first] = late.toSorted((left, right) => (left.state.nonce ?? 0) - (right.state.nonce ?? 0));
    if (first !== undefined) return `${describe(first, clock)}: ${findRefusal(first) ?? waitRemedy}`;
    return this.#refusal && `the chain refuses transactions (since ${this.#refusal.since}): ${this.#refusal.reason}`;
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

/** Why an endpoint refused a transaction that no block has, with the remedy. */
function findRefusal({ state: { refusal, seenIn } }: PendingTransaction): string | undefined {
  return refusal === undefined || seenIn !== undefined ? undefined : findRemedy(toBrokerError(refusal));
}

/** A refusal with its remedy; undefined if there is none. */
function findRemedy(error: unknown): string | undefined {
  if (!(error instanceof BrokerError) || error.hints.length === 0 || !(error.cause instanceof RpcFailure))
    return undefined;
  return [error.cause.message, ...error.hints].join(". ");
}
