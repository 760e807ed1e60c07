import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { Hex } from "./hex.ts";
import type { ContractLog } from "./parse-log.ts";
import type { SignedTransaction } from "./transaction.ts";

/** What a transaction is to do. */
export interface TransactionRequest {
  readonly to: Hex;
  readonly data: Uint8Array;
  readonly gas: number;
  /** Logs that it writes when it succeeds; undefined when that depends. */
  readonly logsExpected: number | undefined;
}

/** A transaction that was included and succeeded. */
export interface Inclusion {
  readonly blockNumber: number;
  /** Logs of our contracts in it. */
  readonly logs: readonly ContractLog[];
}

/** A transaction on its way, from the call until its fate is known or no longer waited for. */
export class PendingTransaction {
  readonly request: TransactionRequest;
  /** When it was asked for, in milliseconds since the epoch. */
  readonly at: number;
  /** When its receipt is to be asked for, if nothing was heard of it until then. */
  lookUpAt: number;
  readonly outcome: Deferred<Inclusion> = createDeferred<Inclusion>();
  /** Known once it is signed. From then on it can be included at any time. */
  signed: (SignedTransaction & { readonly nonce: number }) | undefined;
  /** Logs read from its block, as far as they are read. */
  logs: ContractLog[] = [];
  /** The endpoint said that it has it. */
  isAccepted = false;
  /** A send ended without an answer, so that the endpoint may have it all the same. */
  isUncertain = false;
  isSettled = false;
  /** Ends deadline and abort listener. */
  release: () => void = () => {};

  constructor(request: TransactionRequest, times: { readonly at: number; readonly lookUpAt: number }) {
    this.request = request;
    this.at = times.at;
    this.lookUpAt = times.lookUpAt;
  }
}
