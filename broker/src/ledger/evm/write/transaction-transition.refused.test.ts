import { expect, test } from "vitest";
import { RpcFailure, type RpcFailureKind } from "../endpoint/rpc-failure.ts";
import { newTransaction, noOp, type TransactionState, type Variant } from "./transaction-state.ts";
import { transition } from "./transaction-transition.ts";

const account = `0x${"aa".repeat(20)}` as const;

function variant(digits: string, signedAt: number): Variant {
  const hash = `0x${digits.repeat(32)}` as const;
  return { hash, raw: new Uint8Array(0), fees: { kind: "legacy", gasPrice: 1n }, signedAt, signedAtBlock: signedAt };
}

const [oldest, old, newest] = [variant("01", 1), variant("02", 2), variant("03", 3)];

/** Three versions, the newest refused. */
function refuse(kind: RpcFailureKind, state: Partial<TransactionState>): TransactionState {
  const sending = {
    ...newTransaction(account, noOp(account)),
    nonce: 7,
    variants: [newest, old, oldest],
    isBusy: true,
  };
  const failure = new RpcFailure(kind, kind, { cause: undefined });
  return transition({ ...sending, ...state }, { kind: "sent", hash: newest.hash, failure }).state;
}

const order = ({ variants }: TransactionState) => variants.map(({ hash }) => hash);

test.each(["refused", "insufficient-funds"] as const)(
  "%s: the version that an endpoint has is the next to send",
  (kind) => {
    const state = refuse(kind, { reach: "taken", takenHash: oldest.hash });
    expect(order(state)).toEqual([oldest.hash, old.hash, newest.hash]);
    expect(state.variants[0]).toMatchObject({ signedAt: 3, signedAtBlock: 3 }); // So that its fee is not raised at once.
  },
);

test.each(["refused", "insufficient-funds"] as const)(
  "%s after a restart: each older version gets its turn",
  (kind) => {
    const first = refuse(kind, { reach: "unknown" });
    expect(order(first)).toEqual([old.hash, oldest.hash, newest.hash]);
    expect(order(refuse(kind, first))).toEqual([oldest.hash, newest.hash, old.hash]);
  },
);

test("has a version once that is signed again with the fees of an older one", () => {
  const state = refuse("refused", { reach: "unknown" });
  expect(order(transition(state, { kind: "signed", variant: newest, isRecorded: true }).state)).toEqual([
    newest.hash,
    old.hash,
    oldest.hash,
  ]);
});
