import { BrokerError } from "@stele/wire";
import { describe, expect, test } from "vitest";
import type { Hash } from "../../../domain/topic.ts";
import { RpcFailure, type RpcFailureKind } from "../endpoint/rpc-failure.ts";
import type { ContractLog } from "../read/parse-log.ts";
import { newTransaction, noOp, type TransactionState, TransactionTooLarge, type Variant } from "./transaction-state.ts";
import { type Effect, type TransactionEvent, transition } from "./transaction-transition.ts";

const account = `0x${"aa".repeat(20)}` as const;
const request = { to: account, data: new Uint8Array([1]), gas: 50_000, logsExpected: 2 };
const fresh = newTransaction(account, request);

function variant(hash: Hash): Variant {
  return { hash, raw: new Uint8Array(0), fees: { kind: "legacy", gasPrice: 1n }, signedAt: 0, signedAtBlock: 0 };
}

const old = variant(`0x${"01".repeat(32)}`);
const newest = variant(`0x${"02".repeat(32)}`);
/** Signed, recorded and being sent for the first time. */
const sending: TransactionState = { ...fresh, nonce: 7, variants: [newest], isRecorded: true, isBusy: true };
const signed: TransactionState = { ...sending, isBusy: false };
const taken: TransactionState = { ...signed, reach: "taken", takenHash: newest.hash };
const left: Effect = { kind: "leave", nonce: 7, variants: [newest] };
const withoutNonce = { nonce: undefined, variants: [], reach: "nowhere", takenHash: undefined } as const;

function sent(kind: RpcFailureKind | undefined, hash = newest.hash): TransactionEvent {
  const failure = kind === undefined ? undefined : new RpcFailure(kind, kind, { cause: undefined });
  return { kind: "sent", hash, failure };
}

function logOf(blockNumber: number): ContractLog {
  return {
    kind: "topic-closed",
    address: account,
    blockNumber,
    blockHash: newest.hash,
    transactionHash: newest.hash,
    logIndex: 0,
  };
}

interface Row {
  readonly name: string;
  readonly state: TransactionState;
  readonly event: TransactionEvent;
  /** Fields of the next state; the others stay as they are. */
  readonly next?: Partial<TransactionState>;
  readonly effects: readonly unknown[];
}

const failed = expect.objectContaining({ code: 200202 });
const timeout = expect.objectContaining({ code: 200201 });
const error = new BrokerError("transactionFailed", { details: "reverted in block 9" });
const inclusion = { blockNumber: 9, logs: [] };

const signing: readonly Row[] = [
  {
    name: "numbered: signs",
    state: fresh,
    event: { kind: "numbered", nonce: 7 },
    next: { nonce: 7 },
    effects: [{ kind: "sign" }],
  },
  {
    name: "signed: the new version comes first",
    state: { ...signed, variants: [old] },
    event: { kind: "signed", variant: newest, isRecorded: false },
    next: { variants: [newest, old], isRecorded: false },
    effects: [],
  },
  { name: "began: becomes busy", state: signed, event: { kind: "began" }, next: { isBusy: true }, effects: [] },
  {
    name: "recorded: sends",
    state: { ...sending, isRecorded: false },
    event: { kind: "recorded", hash: newest.hash, isWritten: true },
    next: { isBusy: false, isRecorded: true },
    effects: [{ kind: "send" }],
  },
  {
    name: "not recorded: sends nothing",
    state: { ...sending, isRecorded: false },
    event: { kind: "recorded", hash: newest.hash, isWritten: false },
    next: { isBusy: false },
    effects: [],
  },
];

const sends: readonly Row[] = [
  {
    name: "accepted for the first time",
    state: sending,
    event: sent(undefined),
    next: { isBusy: false, reach: "taken", takenHash: newest.hash },
    effects: [{ kind: "taken", isNew: true, isForgotten: false }],
  },
  {
    name: "accepted as new after an endpoint had it: the endpoint has lost it",
    state: { ...taken, isBusy: true },
    event: sent(undefined),
    next: { isBusy: false },
    effects: [{ kind: "taken", isNew: true, isForgotten: true }],
  },
  {
    name: "already known after a lost answer: taken, and nothing was forgotten",
    state: { ...sending, reach: "unknown" },
    event: sent("already-known"),
    next: { isBusy: false, reach: "taken", takenHash: newest.hash },
    effects: [{ kind: "taken", isNew: false, isForgotten: false }],
  },
  {
    name: "no answer: an endpoint may have it",
    state: sending,
    event: sent("connection"),
    next: { isBusy: false, reach: "unknown", failedSends: 1 },
    effects: [{ kind: "unanswered", failure: expect.any(RpcFailure) }],
  },
  {
    name: "not reached: still nowhere",
    state: sending,
    event: sent("unreached"),
    next: { isBusy: false },
    effects: [{ kind: "unanswered", failure: expect.any(RpcFailure) }],
  },
  {
    name: "an answer after its fate is final: changes nothing else",
    state: { ...sending, isDone: true },
    event: sent("underpriced"),
    next: { isBusy: false },
    effects: [],
  },
];

/** Refusals of a transaction that no endpoint has, and of one that an endpoint may have. */
const refusalRows: readonly Row[] = [
  {
    name: "underpriced: raises the fee",
    state: sending,
    event: sent("underpriced"),
    effects: [{ kind: "offer-more" }],
  },
  { name: "nonce too high: waits", state: sending, event: sent("nonce-too-high"), effects: [] },
  {
    name: "nonce too low: signs with another nonce",
    state: sending,
    event: sent("nonce-too-low"),
    next: { ...withoutNonce, isRecorded: false, refusal: undefined },
    effects: [left, { kind: "nonce-used", nonce: 7, isFinal: false }, { kind: "enqueue" }],
  },
  {
    name: "another transaction with the nonce is pending: signs with another nonce",
    state: sending,
    event: sent("replacement-underpriced"),
    next: { ...withoutNonce, isRecorded: false, refusal: undefined },
    effects: [left, { kind: "nonce-used", nonce: 7, isFinal: false }, { kind: "enqueue" }],
  },
  {
    name: "gas too low: asks for an estimate, once",
    state: sending,
    event: sent("gas-too-low"),
    next: { isEstimated: true, isBusy: true },
    effects: [{ kind: "estimate", error: failed }],
  },
  {
    name: "gas too low after the estimate: withdraws",
    state: { ...sending, isEstimated: true },
    event: sent("gas-too-low"),
    next: { isDone: true },
    effects: [{ kind: "withdraw", nonce: 7, reason: failed }],
  },
  {
    name: "too large: withdraws with TransactionTooLarge",
    state: sending,
    event: sent("too-large"),
    next: { isDone: true },
    effects: [{ kind: "withdraw", nonce: 7, reason: expect.any(TransactionTooLarge) }],
  },
  { name: "a refused no-op: stays", state: { ...sending, isNoOp: true }, event: sent("refused"), effects: [] },
  {
    name: "refused while an endpoint may have it: stays",
    state: { ...sending, reach: "unknown" },
    event: sent("nonce-too-low"),
    effects: [],
  },
  {
    name: "too large, and its caller waits: stays",
    state: { ...sending, reach: "unknown" },
    event: sent("too-large"),
    effects: [],
  },
  {
    name: "too large, and nobody waits: a no-op takes its nonce",
    state: { ...sending, reach: "unknown", isAnswered: true },
    event: sent("too-large"),
    next: { isNoOp: true, request: noOp(account) },
    effects: [{ kind: "sign", gaveUp: "too-large" }],
  },
  {
    name: "too large, but an endpoint has an older version: sends that one",
    state: { ...sending, variants: [newest, old], reach: "taken", takenHash: old.hash, isAnswered: true },
    event: sent("too-large"),
    next: { variants: [old, newest] },
    effects: [{ kind: "send" }],
  },
];
const refusal: RpcFailure = expect.any(RpcFailure); // Matches any failure.
const refusals = refusalRows.map((row) => ({ ...row, next: { isBusy: false, refusal, ...row.next } }));

const fates: readonly Row[] = [
  {
    name: "some of its logs: waits for its receipt",
    state: taken,
    event: { kind: "logged", logs: [logOf(9)] },
    effects: [],
  },
  {
    name: "all of its logs: resolves",
    state: taken,
    event: { kind: "logged", logs: [logOf(9), logOf(9)] },
    next: { isDone: true },
    effects: [{ kind: "resolve", inclusion: { blockNumber: 9, logs: [logOf(9), logOf(9)] } }],
  },
  { name: "seen: waits", state: taken, event: { kind: "seen", blockNumber: 9 }, next: { seenIn: 9 }, effects: [] },
  {
    name: "absent: forgets the block that it was seen in",
    state: { ...taken, seenIn: 9 },
    event: { kind: "absent" },
    next: { seenIn: undefined },
    effects: [],
  },
  {
    name: "included: resolves",
    state: taken,
    event: { kind: "included", inclusion },
    next: { isDone: true },
    effects: [{ kind: "resolve", inclusion }],
  },
  {
    name: "reverted by the registry: rejects",
    state: taken,
    event: { kind: "reverted", blockNumber: 9, isOutOfGas: false },
    next: { ...withoutNonce, isRecorded: false, isDone: true },
    effects: [left, { kind: "reject", reason: failed }],
  },
  {
    name: "out of gas: asks for an estimate",
    state: taken,
    event: { kind: "reverted", blockNumber: 9, isOutOfGas: true },
    next: { ...withoutNonce, isRecorded: false, isEstimated: true },
    effects: [left, { kind: "estimate", error: failed }],
  },
  {
    name: "out of gas, and nobody waits: ends",
    state: { ...taken, isAnswered: true },
    event: { kind: "reverted", blockNumber: 9, isOutOfGas: true },
    next: { ...withoutNonce, isRecorded: false, isDone: true },
    effects: [left, { kind: "reject", reason: failed }],
  },
  {
    name: "replaced in a final block: signs with another nonce",
    state: taken,
    event: { kind: "replaced" },
    next: { ...withoutNonce, isRecorded: false },
    effects: [left, { kind: "nonce-used", nonce: 7, isFinal: false }, { kind: "enqueue" }],
  },
  {
    name: "replaced during a send: the next check decides",
    state: { ...taken, isBusy: true },
    event: { kind: "replaced" },
    effects: [],
  },
  {
    name: "a recovered transaction is replaced: ends",
    state: { ...taken, isRecovered: true },
    event: { kind: "replaced" },
    next: { ...withoutNonce, isRecorded: false, isDone: true },
    effects: [left, { kind: "nonce-used", nonce: 7, isFinal: true }],
  },
  {
    name: "rolled back below its block: checks again",
    state: { ...taken, seenIn: 9 },
    event: { kind: "rolled-back", blockNumber: 8 },
    next: { seenIn: undefined },
    effects: [{ kind: "look-up" }],
  },
  {
    name: "rolled back to its block: stays",
    state: { ...taken, seenIn: 8 },
    event: { kind: "rolled-back", blockNumber: 8 },
    effects: [],
  },
];

const estimates: readonly Row[] = [
  {
    name: "an estimate after a refusal: signs again",
    state: { ...signed, isBusy: true },
    event: { kind: "estimated", gas: 60_000, nonce: 7, error },
    next: { request: { ...request, gas: 60_000 }, isBusy: false, variants: [] },
    effects: [left, { kind: "sign" }],
  },
  {
    name: "no estimate after a refusal: may be sent again",
    state: { ...signed, isBusy: true },
    event: { kind: "estimated", gas: undefined, nonce: 7, error },
    next: { isBusy: false },
    effects: [],
  },
  {
    name: "an estimate for a nonce that it no longer has: signs nothing",
    state: { ...signed, nonce: 8 },
    event: { kind: "estimated", gas: 60_000, nonce: 7, error },
    next: { request: { ...request, gas: 60_000 } },
    effects: [],
  },
  {
    name: "an estimate after it ran out of gas: queues it again",
    state: fresh,
    event: { kind: "estimated", gas: 60_000, nonce: undefined, error },
    next: { request: { ...request, gas: 60_000 } },
    effects: [{ kind: "enqueue" }],
  },
  {
    name: "no estimate after it ran out of gas: rejects",
    state: fresh,
    event: { kind: "estimated", gas: undefined, nonce: undefined, error },
    next: { isDone: true },
    effects: [{ kind: "reject", reason: error }],
  },
  {
    name: "held back by a pool: another gas makes it another transaction",
    state: taken,
    event: { kind: "held-back" },
    next: { request: { ...request, gas: 49_999 } },
    effects: [],
  },
];

const ends: readonly Row[] = [
  {
    name: "expires in the queue",
    state: fresh,
    event: { kind: "expired" },
    next: { isDone: true },
    effects: [{ kind: "dequeue" }, { kind: "reject", reason: "unreachable" }],
  },
  {
    name: "expires while an endpoint may have it: the outcome is unknown",
    state: taken,
    event: { kind: "expired" },
    effects: [{ kind: "reject", reason: timeout }],
  },
  {
    name: "expires after a refusal: withdraws with the reason",
    state: { ...signed, refusal: new RpcFailure("too-large", "too large", { cause: undefined }) },
    event: { kind: "expired" },
    next: { isDone: true },
    effects: [{ kind: "withdraw", nonce: 7, reason: expect.any(TransactionTooLarge) }],
  },
  {
    name: "expires unreached: withdraws it and all later ones",
    state: signed,
    event: { kind: "expired" },
    effects: [{ kind: "withdraw-all" }],
  },
  { name: "expires, answered: stays", state: { ...taken, isAnswered: true }, event: { kind: "expired" }, effects: [] },
  {
    name: "retracted: withdraws",
    state: signed,
    event: { kind: "retracted", reason: "unreachable" },
    next: { isDone: true },
    effects: [{ kind: "withdraw", nonce: 7, reason: "unreachable" }],
  },
  { name: "retracted unsigned: stays", state: fresh, event: { kind: "retracted", reason: "unreachable" }, effects: [] },
  {
    name: "answered: its caller has an answer",
    state: taken,
    event: { kind: "answered" },
    next: { isAnswered: true },
    effects: [],
  },
];

describe("transition", () => {
  test.each([...signing, ...sends, ...refusals, ...fates, ...estimates, ...ends])("$name", (row) => {
    const { state, effects } = transition(row.state, row.event);
    expect(effects).toEqual(row.effects);
    expect(state).toEqual({ ...row.state, ...row.next });
  });

  test("changes no state in place", () => {
    const before = structuredClone({ ...taken, variants: [] });
    transition(taken, { kind: "expired" });
    transition(taken, { kind: "replaced" });
    expect({ ...taken, variants: [] }).toEqual(before);
  });
});
