import { BrokerError } from "@stele/wire";
import { expect, test } from "vitest";
import { RpcFailure, type RpcFailureKind } from "../endpoint/rpc-failure.ts";
import { newTransaction, noOp, type TransactionState, type Variant } from "./transaction-state.ts";
import { type Step, type TransactionEvent, transition } from "./transaction-transition.ts";
import type { NonceLook } from "./used-nonce.ts";

const account = `0x${"aa".repeat(20)}` as const;

function variant(digits: string, signedAt: number): Variant {
  const hash = `0x${digits.repeat(32)}` as const;
  return { hash, raw: new Uint8Array(0), fees: { kind: "legacy", gasPrice: 1n }, signedAt, signedAtBlock: signedAt };
}

const [oldest, old, newest] = [variant("01", 1), variant("02", 2), variant("03", 3)];

/** The step after an endpoint refused the newest of three versions. */
function refuse(kind: RpcFailureKind, state: Partial<TransactionState>): Step {
  const sending = {
    ...newTransaction(account, noOp(account)),
    nonce: 7,
    variants: [newest, old, oldest],
    isBusy: true,
  };
  const failure = new RpcFailure(kind, kind, { cause: undefined });
  return transition({ ...sending, ...state }, { kind: "sent", hash: newest.hash, failure });
}

const order = ({ variants }: TransactionState) => variants.map(({ hash }) => hash);

const kinds = ["refused", "fee-capped", "insufficient-funds"] as const;
const send = { kind: "send" };

test.each(kinds)("%s: sends the version that an endpoint has", (kind) => {
  const { state, effects } = refuse(kind, { reach: "taken", takenHash: oldest.hash });
  expect([order(state), effects]).toEqual([[oldest.hash, old.hash, newest.hash], [send]]);
  expect(state.variants[0]).toMatchObject({ signedAt: 3, signedAtBlock: 3 }); // Otherwise its fee would be raised at once.
});

test.each(kinds)("%s after a restart: sends each older version once, then waits for the next check", (kind) => {
  const first = refuse(kind, { reach: "unknown" });
  expect([order(first.state), first.effects]).toEqual([[old.hash, oldest.hash, newest.hash], [send]]);
  const second = refuse(kind, first.state);
  expect([order(second.state), second.effects]).toEqual([[oldest.hash, newest.hash, old.hash], [send]]);
  const third = refuse(kind, second.state);
  expect([order(third.state), third.effects]).toEqual([[newest.hash, old.hash, oldest.hash], []]);
  expect(refuse(kind, transition(third.state, { kind: "absent" }).state).effects).toEqual([send]);
});

test.each(kinds)("%s no-op, which no endpoint has: sends its older version", (kind) => {
  const { state, effects } = refuse(kind, { isNoOp: true });
  expect([order(state), effects]).toEqual([[old.hash, oldest.hash, newest.hash], [send]]);
});

test("keeps the newest version as the next to send if an endpoint that has this version refuses it", () => {
  const { state, effects } = refuse("refused", { reach: "taken", takenHash: newest.hash });
  expect([order(state), effects]).toEqual([[newest.hash, old.hash, oldest.hash], []]);
  expect(order(refuse("insufficient-funds", { reach: "taken", takenHash: newest.hash }).state)[0]).toBe(old.hash);
});

test("a transaction lists a version only once, even if raising the fees of an older version signs the same version again", () => {
  const { state } = refuse("refused", { reach: "unknown" });
  const again = transition(state, { kind: "signed", variant: newest, isRecorded: true }).state;
  expect(order(again)).toEqual([newest.hash, old.hash, oldest.hash]);
  expect(again.refusedInRow).toBe(1); // Otherwise raises and refusals would alternate forever.
});

const failing = { nonce: 7, variants: [newest], reach: "unknown", failedSends: 48, isAnswered: true } as const;
const gaveUp = { kind: "sign", gaveUp: "no endpoint took it" };

test.each<[string, Partial<TransactionState> & { readonly isNext?: boolean }, readonly unknown[]]>([
  ["next in line, and nobody waits", {}, [gaveUp]],
  ["not next in line", { isNext: false }, []],
  ["its caller waits", { isAnswered: false }, []],
  ["fewer failures", { failedSends: 47 }, []],
  ["a send in progress", { isBusy: true }, []],
  ["a no-op", { isNoOp: true }, []],
  ["final until a reorg", { wasFinal: true }, []],
])(
  "after 48 failed sends, a no-op replaces only the next transaction in line, if nobody waits for it: %s",
  (_, { isNext = true, ...state }, effects) => {
    const before = { ...newTransaction(account, { ...noOp(account), data: new Uint8Array(1) }), ...failing, ...state };
    const after = transition(before, { kind: "absent", isNext });
    expect(after.effects).toEqual(effects);
    expect(after.state.isNoOp).toBe(before.isNoOp || effects.length > 0);
  },
);

test.each([
  ["connection", {}, 6],
  ["refused", {}, 6],
  ["fee-capped", {}, 6],
  ["unreached", {}, 5],
  ["insufficient-funds", {}, 5],
  ["limit-exceeded", {}, 5],
  ["nonce-too-high", {}, 5],
  ["refused", { takenHash: newest.hash, reach: "taken" }, 5],
] as const)(
  "counts a failed send only if a no-op may help: after the failure %s, with %j, five become %i",
  (kind, state, failedSends) => {
    expect(refuse(kind, { reach: "unknown", failedSends: 5, ...state }).state.failedSends).toBe(failedSends);
  },
);

test("counts the refusals of all versions in one check as one failed send", () => {
  let { state } = refuse("refused", { reach: "unknown" });
  for (let version = 0; version < 2; version += 1) ({ state } = refuse("refused", state));
  expect([state.refusedInRow, state.failedSends]).toEqual([3, 1]);
  expect(refuse("refused", transition(state, { kind: "absent", isNext: true }).state).state.failedSends).toBe(2);
});

test("a transaction forgets its failed sends once an endpoint accepts a version", () => {
  const sending = { ...newTransaction(account, noOp(account)), ...failing, isBusy: true };
  expect(transition(sending, { kind: "sent", hash: newest.hash, failure: undefined }).state.failedSends).toBe(0);
});

test.each([
  { kind: "recorded", hash: old.hash, isWritten: true },
  { kind: "sent", hash: old.hash, failure: new RpcFailure("nonce-too-low", "nonce too low", { cause: undefined }) },
  { kind: "sent", hash: old.hash, failure: undefined },
] as const)("a transaction ignores news of a version that it no longer has: $kind", (event) => {
  const state = { ...newTransaction(account, noOp(account)), nonce: 8, variants: [newest], isBusy: true };
  expect(transition(state, event)).toEqual({ state, effects: [] });
});

test("if an endpoint may have an older version of a no-op, sends the next version if one is refused for its size", () => {
  const state = { reach: "unknown", isNoOp: true, isAnswered: true, isEstimated: true } as const;
  const large = refuse("too-large", state);
  expect([order(large.state), large.effects]).toEqual([[old.hash, oldest.hash, newest.hash], [send]]);
  expect(refuse("gas-too-low", state).effects).toEqual([send]);
});

test("after a refused no-op, sends the next version if the connection fails, since the send that failed may be of the given-up transaction", () => {
  const state = { reach: "unknown", isNoOp: true, isAnswered: true, refusedInRow: 1 } as const;
  const failed = refuse("connection", state);
  expect(order(failed.state)).toEqual([old.hash, oldest.hash, newest.hash]);
  const unanswered = { kind: "unanswered", failure: expect.objectContaining({ kind: "connection" }) };
  expect(failed.effects).toEqual([unanswered, send]);
  expect(refuse("connection", { ...state, refusedInRow: 2 }).effects).toEqual([unanswered]);
  for (const other of [{ refusedInRow: 0 }, { isNoOp: false }])
    expect(order(refuse("connection", { ...state, ...other }).state)[0]).toBe(newest.hash);
});

test("asks for the gas of a no-op even if the transaction that it replaces was estimated", () => {
  const given = transition(
    { ...newTransaction(account, { ...noOp(account), data: new Uint8Array(1) }), ...failing, isEstimated: true },
    { kind: "absent", isNext: true },
  ).state;
  const asked = refuse("gas-too-low", { ...given, variants: [newest, old, oldest] });
  expect(asked.effects).toMatchObject([{ kind: "estimate" }]);
  expect(asked.state.isBusy).toBe(true);
});

test("after an estimate for a no-op, keeps every version that an endpoint may have", () => {
  const asking = { nonce: 7, variants: [newest, oldest], reach: "unknown", isBusy: true, isNoOp: true } as const;
  const estimated = { kind: "estimated", gas: 60_000, nonce: 7, error: new BrokerError("transactionFailed") } as const;
  const { state, effects } = transition({ ...newTransaction(account, noOp(account)), ...asking }, estimated);
  expect([order(state), effects]).toEqual([[newest.hash, oldest.hash], [{ kind: "sign" }]]);
});

test.each(["too-large", "gas-too-low"] as const)(
  "%s: gives up no transaction that was final before a reorg, and sends its next version",
  (kind) => {
    const state = { reach: "unknown", isAnswered: true, isRecovered: true, wasFinal: true } as const;
    const { state: next, effects } = refuse(kind, state);
    expect([order(next), effects, next.isNoOp]).toEqual([[old.hash, oldest.hash, newest.hash], [send], false]);
  },
);

test.each<[string, Partial<TransactionState> & { readonly isNext?: boolean }, boolean]>([
  ["next in line, and nobody waits", {}, true],
  ["not next in line", { isNext: false }, false],
  ["its caller waits", { isAnswered: false }, false],
  ["final until a reorg", { wasFinal: true }, false],
])(
  "a no-op replaces a transaction that no block has room for only if it is the next in line, and nobody waits: %s",
  (_, { isNext = true, ...state }, isGivenUp) => {
    const before = { ...newTransaction(account, noOp(account)), ...failing, failedSends: 0, ...state };
    const { effects } = transition(before, { kind: "absent", isNext, isTooLarge: true });
    expect(effects).toEqual(isGivenUp ? [{ kind: "sign", gaveUp: "its gas exceeds that of a block" }] : []);
  },
);

const usedAt = (readUpTo: number, at = 0) => ({ isUsed: true, readUpTo, at });

const usedByOther = {
  nonce: 7,
  variants: [newest],
  usedSince: usedAt(100),
  reach: "unknown",
  refusal: new RpcFailure("nonce-too-low", "nonce too low", { cause: undefined }),
  isAnswered: true,
} as const;

test.each<[string, Partial<TransactionState> & { readonly look?: NonceLook }, boolean]>([
  ["nobody waits", {}, true],
  ["refused in other words", { refusal: new RpcFailure("refused", "nonce is used", { cause: undefined }) }, true],
  ["it was final before a reorg, so its caller may know it as committed", { wasFinal: true }, false],
  ["its caller waits", { isAnswered: false }, false],
  ["a send in progress", { isBusy: true }, false],
  ["the nonce is not used in a final block", { look: { isUsed: false, readUpTo: 164, at: 0 } }, false],
  ["the nonce is used for too few blocks and too short a time", { look: usedAt(163, 599_999) }, false],
  ["the nonce is used for ten minutes without a new block", { look: usedAt(100, 600_000) }, true],
  ["the nonce was not used before", { usedSince: undefined }, false],
  ["the endpoint did not refuse the transaction", { refusal: undefined }, false],
  ["refused for a limit", { refusal: new RpcFailure("limit-exceeded", "limit exceeded", { cause: undefined }) }, false],
  ["refused for its fee", { refusal: new RpcFailure("fee-capped", "fee cap", { cause: undefined }) }, false],
])(
  "gives up a transaction whose nonce an unknown transaction used, only if nobody waits: %s",
  (_, { look = usedAt(164), ...state }, isDone) => {
    const before = { ...newTransaction(account, noOp(account)), ...usedByOther, ...state };
    const after = transition(before, { kind: "absent", look });
    expect(after.state.isDone).toBe(isDone);
    const leave = { kind: "leave", nonce: 7, variants: [newest] };
    expect(after.effects).toEqual(isDone ? [leave, { kind: "nonce-used", nonce: 7, isFinal: true }] : []);
  },
);

test.each<[string, TransactionEvent, number | undefined]>([
  ["another look that finds it used", { kind: "absent", look: usedAt(150) }, 100],
  ["a look at an endpoint without the state", { kind: "absent" }, 100],
  ["a look that finds it unused", { kind: "absent", look: { isUsed: false, readUpTo: 150, at: 0 } }, undefined],
  ["a block that contains the transaction", { kind: "seen", blockNumber: 150 }, undefined],
  ["a reorg above the block of the first look", { kind: "rolled-back", blockNumber: 100 }, 100],
  ["a reorg below the block of the first look", { kind: "rolled-back", blockNumber: 99 }, undefined],
])("counts the blocks since a nonce was used from block 100 on, or anew, after %s", (_, event, since) => {
  const before = { ...newTransaction(account, noOp(account)), ...usedByOther };
  expect(transition(before, event).state.usedSince?.readUpTo).toBe(since);
});
