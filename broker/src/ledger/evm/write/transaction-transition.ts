import { BrokerError } from "@stele/wire";
import type { Hash } from "../../../domain/topic.ts";
import { isUnanswered, type RpcFailure, type RpcFailureKind, toBrokerError } from "../endpoint/rpc-failure.ts";
import type { ContractLog } from "../read/parse-log.ts";
import {
  hashesOf,
  type Inclusion,
  isRetractable,
  noOp,
  type Rejection,
  type TransactionState,
  TransactionTooLarge,
  type Variant,
  withOtherGas,
} from "./transaction-state.ts";
import { findUsedSince, isUsedForGood, type NonceLook } from "./used-nonce.ts";

export type TransactionEvent =
  | { readonly kind: "numbered"; readonly nonce: number }
  | { readonly kind: "signed"; readonly variant: Variant; readonly isRecorded: boolean }
  /** A send, or a write to the journal, began. */
  | { readonly kind: "began" }
  /** The write of a version to the journal ended. */
  | { readonly kind: "recorded"; readonly hash: Hash; readonly isWritten: boolean }
  /** The send of a version ended. Without a failure, the endpoint accepted the version as new. */
  | { readonly kind: "sent"; readonly hash: Hash; readonly failure: RpcFailure | undefined }
  /** New final blocks contain these logs of the transaction. */
  | { readonly kind: "logged"; readonly logs: readonly ContractLog[] }
  /** A block contains the transaction, but it is not final, or not read yet, or the endpoint lacks the receipt. `isDeep`: no reorg can remove the block. */
  | { readonly kind: "seen"; readonly blockNumber: number; readonly isDeep?: boolean }
  /**
   * No version has a receipt. `isNext`: the chain waits for this nonce, and includes no later nonce before it. `look`: whether the chain counts the nonce as
   * used, although the endpoint returns no transaction that used it; undefined if the endpoint cannot count. `isTooLarge`: its gas exceeds that of a block.
   */
  | {
      readonly kind: "absent";
      readonly isNext?: boolean;
      readonly look?: NonceLook | undefined;
      readonly isTooLarge?: boolean;
    }
  | { readonly kind: "included"; readonly inclusion: Inclusion }
  | { readonly kind: "reverted"; readonly blockNumber: number; readonly isOutOfGas: boolean }
  /** A final block contains another transaction with its nonce. */
  | { readonly kind: "replaced" }
  /** The endpoint's estimate, undefined if there is none. `nonce` is the transaction's nonce when the estimate was requested. */
  | {
      readonly kind: "estimated";
      readonly gas: number | undefined;
      readonly nonce: number | undefined;
      readonly error: BrokerError;
    }
  /** The endpoint's pool holds the transaction back, so only a different transaction with this nonce helps. */
  | { readonly kind: "held-back" }
  /** Blocks after `blockNumber` are no longer on the chain. */
  | { readonly kind: "rolled-back"; readonly blockNumber: number }
  /** The caller's deadline passed, or the caller left. */
  | { readonly kind: "expired" }
  /** The sender withdraws the transaction, which no endpoint has. */
  | { readonly kind: "retracted"; readonly reason: Rejection }
  | { readonly kind: "answered" };

/** Something that the sender does after a transition. The sender does the effects of a step in order. */
export type Effect =
  /** Sign a version with the current fees, record it and send it. `gaveUp`: why a no-op replaces the transaction. */
  | { readonly kind: "sign"; readonly gaveUp?: string | undefined }
  | { readonly kind: "send" }
  /** The endpoint has the version that was sent. `isNew`: it accepted the version as new; `isForgotten`: although an endpoint had it before. */
  | { readonly kind: "taken"; readonly isNew: boolean; readonly isForgotten: boolean }
  | { readonly kind: "unanswered"; readonly failure: RpcFailure }
  | { readonly kind: "offer-more" }
  | { readonly kind: "estimate"; readonly error: BrokerError }
  /** Remove it from the transactions in flight and from the journal: the chain can no longer include any version. */
  | { readonly kind: "leave"; readonly nonce: number; readonly variants: readonly Variant[] }
  /** Another transaction used the nonce. `isFinal`: do not sign this one again. */
  | { readonly kind: "nonce-used"; readonly nonce: number; readonly isFinal: boolean }
  | { readonly kind: "enqueue" }
  | { readonly kind: "dequeue" }
  | { readonly kind: "resolve"; readonly inclusion: Inclusion }
  | { readonly kind: "reject"; readonly reason: Rejection }
  /** Give back the nonce, or fill it with a no-op, then reject. */
  | { readonly kind: "withdraw"; readonly nonce: number; readonly reason: Rejection }
  /** Withdraw this transaction, and all later ones too if no endpoint has any of them. */
  | { readonly kind: "withdraw-all" }
  /** Request its receipt now. */
  | { readonly kind: "look-up" };

export interface Step {
  readonly state: TransactionState;
  readonly effects: readonly Effect[];
}

type Handlers = {
  readonly [Kind in TransactionEvent["kind"]]: (
    state: TransactionState,
    event: Extract<TransactionEvent, { kind: Kind }>,
  ) => Step;
};

const handlers: Handlers = {
  numbered: (state, { nonce }) => step({ ...state, nonce }, { kind: "sign" }),
  signed: (state, { variant, isRecorded }) => {
    // Raising the fee of an older version may yield a version that was signed before (same hash), and that an endpoint has refused.
    const others = state.variants.filter(({ hash }) => hash !== variant.hash);
    const isNew = others.length === state.variants.length;
    return step({
      ...state,
      variants: [variant, ...others],
      isRecorded,
      refusedInRow: isNew ? 0 : state.refusedInRow,
    });
  },
  began: (state) => step({ ...state, isBusy: true }),
  recorded: onRecorded,
  sent: onSent,
  logged: onLogged,
  seen: onSeen,
  absent: onAbsent,
  included: (state, { inclusion }) =>
    step({ ...state, seenIn: undefined, isDone: true }, { kind: "resolve", inclusion }),
  reverted: onReverted,
  replaced: (state) => (state.isBusy ? step({ ...state, seenIn: undefined }) : onNonceUsed(state)),
  estimated: onEstimated,
  "held-back": (state) => step({ ...state, request: withOtherGas(state.request) }),
  "rolled-back": onRolledBack,
  expired: onExpired,
  retracted: (state, { reason }) =>
    state.nonce === undefined
      ? step(state)
      : step({ ...state, isDone: true }, { kind: "withdraw", nonce: state.nonce, reason }),
  answered: (state) => step({ ...state, isAnswered: true }),
};

/**
 * After this many consecutive failed sends, a no-op replaces a transaction, if the chain waits for its nonce and nobody waits for its outcome. A new
 * transaction reaches the number after two to three minutes, one from the journal after six minutes.
 */
const failedSendsMax = 48;
/**
 * At least this many of the failed sends must happen while the chain waits for the transaction's nonce. So once an endpoint that failed at all transactions
 * works again, it gets the transaction before a no-op may replace it.
 */
const failedSendsInLine = 4;

/** The next state of a transaction, and what the sender has to do. Pure. */
export function transition(state: TransactionState, event: TransactionEvent): Step {
  const handle = handlers[event.kind] as (state: TransactionState, event: TransactionEvent) => Step; // Chosen by the event's kind.
  return handle(state, event);
}

function step(state: TransactionState, ...effects: readonly Effect[]): Step {
  return { state, effects };
}

function onRecorded(
  state: TransactionState,
  { hash, isWritten }: { readonly hash: Hash; readonly isWritten: boolean },
): Step {
  if (!hasVersion(state, hash)) return step(state);
  return step({ ...state, isBusy: false, isRecorded: isWritten }, ...(isWritten ? [{ kind: "send" } as const] : []));
}

/** Whether the transaction still has the version. A revert removes its versions, even while one is being sent or recorded. */
function hasVersion(state: TransactionState, hash: Hash): boolean {
  return hashesOf(state).includes(hash);
}

function onSent(state: TransactionState, { hash, failure }: Extract<TransactionEvent, { kind: "sent" }>): Step {
  if (!hasVersion(state, hash)) return step(state);
  const sent = { ...state, isBusy: false };
  if (sent.isDone) return step(sent);
  if (failure === undefined || failure.kind === "already-known") {
    const hadIt = sent.takenHash === hash || sent.reach === "unknown";
    const isNew = failure === undefined;
    const taken = {
      ...sent,
      takenHash: hash,
      reach: "taken",
      refusal: undefined,
      refusedInRow: 0,
      failedSends: 0,
    } as const;
    return step(taken, { kind: "taken", isNew, isForgotten: isNew && hadIt });
  }
  if (!isUnanswered(failure)) return onRefused({ ...sent, refusal: failure }, failure);
  if (failure.kind === "unreached") return step(sent, { kind: "unanswered", failure });
  const reach = sent.reach === "nowhere" ? "unknown" : sent.reach;
  const failed = { ...sent, reach, failedSends: sent.failedSends + 1 };
  if (!sent.isNoOp || sent.refusedInRow === 0) return step(failed, { kind: "unanswered", failure });
  // The failed version may be of the original transaction, at which the endpoint always fails: send the next version, which may be the no-op.
  const next = fallBack(failed);
  return step(next.state, { kind: "unanswered", failure }, ...next.effects);
}

function onRefused(state: TransactionState, failure: RpcFailure): Step {
  const { kind } = failure;
  if (kind === "underpriced") return step(state, { kind: "offer-more" });
  if (!isRetractable(state)) return giveWay(state, failure);
  if (kind === "nonce-too-high") return step(state);
  if (kind === "nonce-too-low" || kind === "replacement-underpriced") return onNonceUsed(state);
  if (kind === "gas-too-low" && !state.isEstimated) return askForGas(state, failure);
  if (state.isNoOp) return mayPassByPrice(kind) ? fallBack(state) : step(state);
  if (state.nonce === undefined) return step(state);
  return step({ ...state, isDone: true }, { kind: "withdraw", nonce: state.nonce, reason: toRejection(failure) });
}

/** Whether a version with a lower fee may be accepted. */
function mayPassByPrice(kind: RpcFailureKind): boolean {
  return kind === "refused" || kind === "fee-capped" || kind === "insufficient-funds";
}

/**
 * Handles a refusal while an endpoint may have another version. If the endpoints lost that other version, the nonce would stay unused and block all later ones.
 * If the newest version is too large or has too little gas, an older version that an endpoint has is sent. If there is no such version, or an endpoint refuses
 * it too, a no-op replaces the transaction once nobody waits for the outcome. The chain includes at most one of the two. A no-op never replaces a transaction
 * that was final, because its event may be acknowledged.
 */
function giveWay(state: TransactionState, failure: RpcFailure): Step {
  const { variants, takenHash, isAnswered, isNoOp, isEstimated, wasFinal } = state;
  const { kind } = failure;
  // A chain node may refuse the version because it already has it, with a message that is not recognised as `already-known`.
  const isKnown = kind === "refused" && takenHash !== undefined && variants[0]?.hash === takenHash;
  if (mayPassByPrice(kind)) {
    // Count one failed send per check, however many versions the check sends. Otherwise a transaction that has many versions would get a no-op within seconds.
    const failedSends = state.failedSends + (kind === "insufficient-funds" || state.refusedInRow > 0 ? 0 : 1);
    return isKnown ? step(state) : fallBack({ ...state, failedSends });
  }
  // A version of the original is in the pool, perhaps from an earlier run, and offers more.
  if (kind === "replacement-underpriced" && isNoOp) return step(state, { kind: "offer-more" });
  if (kind !== "too-large" && kind !== "gas-too-low") return step(state);
  const taken = variants.find(({ hash }) => hash === takenHash);
  if (taken !== undefined && taken !== variants[0])
    return step({ ...state, variants: putFirst(taken, variants) }, { kind: "send" });
  // Ask once for the gas of the no-op, which may need more on this chain. In other cases send the next version: the refused one may be older than the no-op.
  if (isNoOp) return kind === "gas-too-low" && !isEstimated ? askForGas(state, failure) : fallBack(state);
  if (wasFinal) return fallBack(state);
  return isAnswered ? giveUp(state, kind) : step(state);
}

function askForGas(state: TransactionState, failure: RpcFailure): Step {
  return step({ ...state, isEstimated: true, isBusy: true }, { kind: "estimate", error: toBrokerError(failure) });
}

/** Signs a no-op with the same nonce: the chain includes at most one of the versions. */
function giveUp(state: TransactionState, gaveUp: string): Step {
  return step({ ...state, request: noOp(state.account), isNoOp: true, isEstimated: false }, { kind: "sign", gaveUp });
}

/**
 * Replaces a transaction with a no-op if an endpoint always fails at it, although it answers other requests, or if no block has room for it since the gas limit
 * fell. Replaces only the transaction whose nonce the chain waits for: if the endpoint fails at all transactions, it fails at the no-op too, and the chain
 * still waits for that nonce. A transaction that was final is never replaced, because its event may be acknowledged.
 */
function onAbsent(
  state: TransactionState,
  { isNext = false, look, isTooLarge = false }: Extract<TransactionEvent, { kind: "absent" }>,
): Step {
  const { isBusy, isAnswered, isNoOp, wasFinal, refusal } = state;
  // The endpoint refuses the transaction too, perhaps with a message that we do not know. While a caller waits, that does not suffice: only the other
  // transaction is proof.
  const isRefused = refusal?.kind === "nonce-too-low" || refusal?.kind === "refused";
  const mayLeave = isAnswered && !isBusy && !wasFinal && isRefused;
  const usedSince = findUsedSince(state.usedSince, look);
  if (mayLeave && isUsedForGood(usedSince, look)) return onNonceUsed(state, true);
  const failedSends = isNext ? state.failedSends : Math.min(state.failedSends, failedSendsMax - failedSendsInLine);
  const looked = { ...state, seenIn: undefined, usedSince, refusedInRow: 0, failedSends };
  const mayGiveUp = isNext && !isBusy && isAnswered && !isNoOp && !wasFinal;
  if (mayGiveUp && isTooLarge) return giveUp(looked, "its gas exceeds that of a block");
  return mayGiveUp && failedSends >= failedSendsMax ? giveUp(looked, "no endpoint took it") : step(looked);
}

/**
 * Sends an older version, preferably the one that an endpoint has: the account may be unable to pay the newest, or the endpoint may have a cap below its fee.
 */
function fallBack(state: TransactionState): Step {
  const [refused, ...older] = state.variants;
  const next = older.find(({ hash }) => hash === state.takenHash) ?? older[0];
  if (refused === undefined || next === undefined) return step(state);
  const variants = putFirst(next, [...older, refused]);
  const refusedInRow = state.refusedInRow + 1;
  return step(
    { ...state, variants, refusedInRow },
    ...(refusedInRow < variants.length ? [{ kind: "send" } as const] : []),
  );
}

/**
 * Puts an older version first, to be sent next. Gives it the newest signing time of all: otherwise the overseer could at once raise its fee to a refused one.
 */
function putFirst(next: Variant, variants: readonly Variant[]): readonly Variant[] {
  const signedAt = Math.max(...variants.map((variant) => variant.signedAt));
  const signedAtBlock = Math.max(...variants.map((variant) => variant.signedAtBlock));
  return [{ ...next, signedAt, signedAtBlock }, ...variants.filter((variant) => variant !== next)];
}

/** Stops tracking the transaction if its block is deep and nobody waits for the outcome, since perhaps no endpoint has the receipt any more. */
function onSeen(
  state: TransactionState,
  { blockNumber, isDeep = false }: Extract<TransactionEvent, { kind: "seen" }>,
): Step {
  const seen = { ...state, seenIn: blockNumber, usedSince: undefined };
  return isDeep && state.isAnswered ? step({ ...seen, isDone: true }, ...leave(state)) : step(seen);
}

/** A round has whole blocks. If a chain node left out some of the logs, the transaction's receipt has them. */
function onLogged(state: TransactionState, { logs }: { readonly logs: readonly ContractLog[] }): Step {
  const [first] = logs;
  const { logsExpected } = state.request;
  const isComplete = first !== undefined && (logsExpected === undefined || logsExpected === logs.length);
  if (!isComplete) return step(state);
  return step({ ...state, isDone: true }, { kind: "resolve", inclusion: { blockNumber: first.blockNumber, logs } });
}

/** Handles a transaction that ran out of gas or that the registry rejected: it changed nothing on the chain. */
function onReverted(
  state: TransactionState,
  { blockNumber, isOutOfGas }: { readonly blockNumber: number; readonly isOutOfGas: boolean },
): Step {
  const error = new BrokerError("transactionFailed", { details: `reverted in block ${blockNumber}` });
  const isHopeless = !isOutOfGas || state.isEstimated || state.isAnswered;
  const next: Effect = isHopeless ? { kind: "reject", reason: error } : { kind: "estimate", error };
  return step(
    { ...unsigned(state), isDone: isHopeless, isEstimated: state.isEstimated || !isHopeless },
    ...leave(state),
    next,
  );
}

/** Another transaction of this key used the nonce. Signs again with another nonce, unless this is a no-op or comes from the journal. */
function onNonceUsed(state: TransactionState, isFinal = state.isNoOp || state.isRecovered): Step {
  const { nonce } = state;
  if (nonce === undefined) return step(state);
  const effects: readonly Effect[] = [...leave(state), { kind: "nonce-used", nonce, isFinal }];
  return step({ ...unsigned(state), isDone: isFinal }, ...effects, ...(isFinal ? [] : [{ kind: "enqueue" } as const]));
}

function onEstimated(
  state: TransactionState,
  { gas, nonce, error }: Extract<TransactionEvent, { kind: "estimated" }>,
): Step {
  const next = gas === undefined ? state : { ...state, request: { ...state.request, gas } };
  if (nonce === undefined) {
    const isHopeless = gas === undefined || state.isAnswered;
    return isHopeless
      ? step({ ...next, isDone: true }, { kind: "reject", reason: error })
      : step(next, { kind: "enqueue" });
  }
  if (state.isDone || state.nonce !== nonce) return step(next);
  const idle = { ...next, isBusy: false };
  if (gas === undefined) return step(idle);
  if (state.reach !== "nowhere") return step(idle, { kind: "sign" });
  // Drop all versions so far: no endpoint has one, and none will accept one, since they have too little gas.
  return step({ ...idle, variants: [] }, ...leave(state), { kind: "sign" });
}

function onRolledBack(state: TransactionState, { blockNumber }: { readonly blockNumber: number }): Step {
  const isLost = state.seenIn !== undefined && state.seenIn > blockNumber;
  const isUseUndone = state.usedSince !== undefined && state.usedSince.readUpTo > blockNumber;
  const kept = isUseUndone ? { ...state, usedSince: undefined } : state;
  return isLost ? step({ ...kept, seenIn: undefined }, { kind: "look-up" }) : step(kept);
}

function onExpired(state: TransactionState): Step {
  const { isAnswered, isDone, nonce, refusal } = state;
  if (isAnswered) return step(state);
  // The sender has withdrawn the transaction already, but the journal may still have it.
  if (isDone) return step(state, { kind: "reject", reason: new BrokerError("transactionTimeout") });
  if (nonce === undefined)
    return step({ ...state, isDone: true }, { kind: "dequeue" }, { kind: "reject", reason: "unreachable" });
  if (!isRetractable(state)) return step(state, { kind: "reject", reason: new BrokerError("transactionTimeout") });
  if (refusal === undefined) return step(state, { kind: "withdraw-all" });
  return step({ ...state, isDone: true }, { kind: "withdraw", nonce, reason: toRejection(refusal) });
}

function leave({ nonce, variants }: TransactionState): readonly Effect[] {
  return nonce === undefined ? [] : [{ kind: "leave", nonce, variants }];
}

/** The state as if the transaction had never been signed. Use it only when the chain can no longer include any version. */
function unsigned(state: TransactionState): TransactionState {
  return {
    ...state,
    nonce: undefined,
    variants: [],
    isRecorded: false,
    isBusy: false,
    reach: "nowhere",
    takenHash: undefined,
    seenIn: undefined,
    usedSince: undefined,
    refusal: undefined,
    failedSends: 0,
  };
}

function toRejection(failure: RpcFailure): Rejection {
  return failure.kind === "too-large" ? new TransactionTooLarge(failure.message) : toBrokerError(failure);
}
