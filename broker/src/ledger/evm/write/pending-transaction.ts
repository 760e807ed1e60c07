import type { BrokerError } from "@stele/wire";
import type { Hash } from "../../../domain/topic.ts";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import type { Hex } from "../hex.ts";
import type { ContractLog } from "../read/parse-log.ts";
import type { RpcFailure } from "../endpoint/rpc-failure.ts";
import type { Fees, SignedTransaction } from "./transaction.ts";

/** What a transaction is to do. */
export interface TransactionRequest {
  readonly to: Hex;
  readonly data: Uint8Array;
  readonly gas: number;
  /** Logs that it writes when it succeeds; undefined when that depends. */
  readonly logsExpected: number | undefined;
}

const plainTransferGas = 21_000;

/** Uses up a nonce, and does nothing. */
export function transferOfNothing(to: Hex): TransactionRequest {
  return { to, data: new Uint8Array(0), gas: plainTransferGas, logsExpected: undefined };
}

/** The same with other gas. What a request asks for has room below, and may have none above it: it is up to what a block holds. */
export function withOtherGas(request: TransactionRequest): TransactionRequest {
  return { ...request, gas: request.gas + (request.gas <= plainTransferGas ? 1 : -1) };
}

/** A transaction that was included and succeeded. */
export interface Inclusion {
  readonly blockNumber: number;
  /** Logs of our contracts in it. */
  readonly logs: readonly ContractLog[];
}

/** One signed form of a transaction. */
export interface Variant extends SignedTransaction {
  readonly fees: Fees;
  readonly signedAt: number;
  /** The newest block known then. */
  readonly signedAtBlock: number;
}

/**
 * How far any form of a transaction may have got. `nowhere`: no endpoint has it, so it is included never, unless it is sent again;
 * `unknown`: a send ended without an answer; `taken`: an endpoint said that it has it.
 */
export type Reach = "nowhere" | "unknown" | "taken";

/**
 * A transaction on its way. It has two lives: its caller's, which ends with an answer, at the latest when the caller's time is over; and
 * its own, which ends when its fate can no longer change.
 */
export class PendingTransaction {
  /** Changes only in its gas, and where a transfer of nothing takes its place. */
  request: TransactionRequest;
  /** When it was asked for, on the monotonic clock. */
  readonly at: number;
  /** Its place among those that wait to be signed. */
  readonly order: number;
  /** Known once it is signed. */
  nonce: number | undefined;
  /** Newest first: the one that is sent. */
  variants: readonly Variant[] = [];
  reach: Reach = "nowhere";
  /** The form that an endpoint said last that it has. */
  takenHash: Hash | undefined;
  /** A send is under way. */
  isSending = false;
  /** When its receipt is to be asked for, if nothing was heard of it until then. */
  lookUpAt: number;
  /** A block that holds it and is not final yet. */
  seenIn: number | undefined;
  /** Logs read from its block, as far as they are read. */
  logs: ContractLog[] = [];
  /** Why the endpoint did not take it, the last time. */
  refusal: RpcFailure | undefined;
  /** Transfers nothing, so that a nonce does not stay open. */
  isFiller = false;
  /** Its gas was asked of the endpoint. */
  isEstimated = false;
  isAnswered = false;
  isDone = false;
  /** Ends deadline and abort listener. */
  release: () => void = () => {};
  readonly #outcome: Deferred<Inclusion> = createDeferred<Inclusion>();

  constructor(
    request: TransactionRequest,
    place: { readonly at: number; readonly order: number; readonly lookUpAt: number },
  ) {
    this.request = request;
    this.at = place.at;
    this.order = place.order;
    this.lookUpAt = place.lookUpAt;
  }

  get outcome(): Promise<Inclusion> {
    return this.#outcome.promise;
  }

  get hashes(): readonly Hash[] {
    return this.variants.map(({ hash }) => hash);
  }

  /** Whether it can be taken back: nobody has it, and nobody is being given it. */
  get isRetractable(): boolean {
    return this.reach === "nowhere" && !this.isSending;
  }

  resolve(inclusion: Inclusion): void {
    if (this.#answer()) this.#outcome.resolve(inclusion);
  }

  reject(error: BrokerError | TransactionTooLarge): void {
    if (this.#answer()) this.#outcome.reject(error);
  }

  /** Puts the form that an endpoint has before newer ones; false where that is the first already, or there is none. */
  fallBack(): boolean {
    const taken = this.variants.find(({ hash }) => hash === this.takenHash);
    if (taken === undefined || taken === this.variants[0]) return false;
    this.variants = [taken, ...this.variants.filter((variant) => variant !== taken)];
    return true;
  }

  /** Makes as if it had never been signed. To be called only when no form of it can come in any more. */
  forgetNonce(): void {
    this.nonce = undefined;
    this.variants = [];
    this.reach = "nowhere";
    this.takenHash = undefined;
    this.seenIn = undefined;
    this.logs = [];
  }

  #answer(): boolean {
    if (this.isAnswered) return false;
    this.isAnswered = true;
    this.release();
    return true;
  }
}

/** The endpoint takes no transaction that large; it was not sent, or surely not taken. */
export class TransactionTooLarge extends Error {
  override readonly name = "TransactionTooLarge";
}
