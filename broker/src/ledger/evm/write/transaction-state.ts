import type { Fees, Hex, SignedTransaction } from "@stele/eth/node";
import type { BrokerError } from "@stele/wire";
import type { Address, Hash } from "../../../domain/topic.ts";
import type { RpcFailure } from "../endpoint/rpc-failure.ts";
import type { ContractLog } from "../read/parse-log.ts";
import type { NonceLook } from "./used-nonce.ts";

/** The target, data and gas of a transaction. */
export interface TransactionRequest {
  readonly to: Hex;
  readonly data: Uint8Array;
  readonly gas: number;
  /** Gas of a publish by the formula for today's EVM; undefined for other transactions. */
  readonly formulaGas?: number | undefined;
  /** Number of logs that the transaction writes if it succeeds; undefined if that depends on the chain. */
  readonly logsExpected: number | undefined;
  /** Whether it may succeed without logs. A publish may not: each of its batches yields a log. */
  readonly mayLackLogs?: boolean | undefined;
  /** Whether the registry may reject the whole transaction, so that it writes no logs. */
  readonly mayRevert?: boolean | undefined;
  /** Called just before each send, once the journal has the transaction, as long as no endpoint can have it. False withdraws the transaction. */
  readonly mayStart?: (() => boolean) | undefined;
  /** Called when an endpoint accepts the transaction, or refuses it for a reason other than its size. May be called repeatedly. */
  readonly onAccepted?: (() => void) | undefined;
}

const plainTransferGas = 21_000;

/** A transfer of nothing: it uses its nonce and changes nothing else. */
export function noOp(to: Hex): TransactionRequest {
  return { to, data: new Uint8Array(0), gas: plainTransferGas, logsExpected: undefined, mayLackLogs: true };
}

/** The same request with one unit of gas less: one more might exceed the block's gas limit. Only a plain transfer gets one more, since it needs all its gas. */
export function withOtherGas(request: TransactionRequest): TransactionRequest {
  return { ...request, gas: request.gas + (request.gas <= plainTransferGas ? 1 : -1) };
}

/** The block of a transaction that succeeded. */
export interface Inclusion {
  readonly blockNumber: number;
  /** Its logs of the registry. */
  readonly logs: readonly ContractLog[];
}

/** One signed version of a transaction. All versions share the nonce, so at most one is included. */
export interface Variant extends SignedTransaction {
  readonly fees: Fees;
  /** Milliseconds of the monotonic clock. */
  readonly signedAt: number;
  /** The newest known block at that time. */
  readonly signedAtBlock: number;
}

/**
 * Whether an endpoint has any version. `nowhere`: no endpoint has one, so the chain cannot include the transaction unless it is sent again.
 * `unknown`: a send ended without an answer. `taken`: an endpoint confirmed a version.
 */
export type Reach = "nowhere" | "unknown" | "taken";

/** The endpoint accepts no transaction of that size. The transaction was not sent, or certainly not accepted. */
export class TransactionTooLarge extends Error {
  override readonly name = "TransactionTooLarge";
}

/** The result for a caller whose transaction is not included. `unreachable` stands for the current outage. */
export type Rejection = BrokerError | TransactionTooLarge | "unreachable";

export interface TransactionState {
  readonly account: Address;
  readonly request: TransactionRequest;
  /** Undefined until its first signature, and after it reverted or another transaction used its nonce. */
  readonly nonce: number | undefined;
  /** The first is the one to send: the newest, or an older one if an endpoint refused the newest. */
  readonly variants: readonly Variant[];
  /** Whether the journal has the newest version; true if there is no journal. */
  readonly isRecorded: boolean;
  readonly reach: Reach;
  /** The version that an endpoint confirmed last. */
  readonly takenHash: Hash | undefined;
  /** Whether a send, a write to the journal or an estimate for the next version is in progress. Two sends at once could have different answers. */
  readonly isBusy: boolean;
  /** A block that contains it and that is not final yet. */
  readonly seenIn: number | undefined;
  /** Since when the chain counts its nonce as used, although no block is known to contain it. */
  readonly usedSince: NonceLook | undefined;
  /** Why an endpoint refused it last. */
  readonly refusal: RpcFailure | undefined;
  /** Number of refusals since a version was signed or accepted, or since the last check. */
  readonly refusedInRow: number;
  /** Number of sends since the last accepted one that got no answer, or a refusal for which there is no remedy. */
  readonly failedSends: number;
  /** Whether it is a no-op, which only fills its nonce. */
  readonly isNoOp: boolean;
  /** Whether it comes from the journal, after a restart or a reorg: then nobody waits for it. */
  readonly isRecovered: boolean;
  /** Whether a final block contained it until a reorg removed the block: then its caller may have been told that it is committed. */
  readonly wasFinal: boolean;
  /** Whether the sender has asked the endpoint to estimate its gas. */
  readonly isEstimated: boolean;
  readonly isAnswered: boolean;
  /** Whether its fate can no longer change. */
  readonly isDone: boolean;
}

export function newTransaction(account: Address, request: TransactionRequest): TransactionState {
  return {
    account,
    request,
    nonce: undefined,
    variants: [],
    isRecorded: false,
    reach: "nowhere",
    takenHash: undefined,
    isBusy: false,
    seenIn: undefined,
    usedSince: undefined,
    refusal: undefined,
    refusedInRow: 0,
    failedSends: 0,
    isNoOp: false,
    isRecovered: false,
    wasFinal: false,
    isEstimated: false,
    isAnswered: false,
    isDone: false,
  };
}

export function hashesOf({ variants }: Pick<TransactionState, "variants">): readonly Hash[] {
  return variants.map(({ hash }) => hash);
}

/** Whether it can be withdrawn: no endpoint has it, and no send is in progress. */
export function isRetractable({ reach, isBusy }: TransactionState): boolean {
  return reach === "nowhere" && !isBusy;
}
