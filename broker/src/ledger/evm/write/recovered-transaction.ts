import { type Fees, fromHex, toHex } from "@stele/eth/node";
import { parseTransaction } from "viem/utils";
import type { Clock } from "../../../ports/clock.ts";
import type { JournalEntry, SignedVariant } from "../../../ports/journal.ts";
import { PendingTransaction } from "./pending-transaction.ts";
import { newTransaction, type TransactionRequest, type TransactionState, type Variant } from "./transaction-state.ts";

/** Restores a transaction from its journal entry. Nobody waits for its outcome, and it may have been sent. `wasFinal`: whether a final block had it. */
export function recoverTransaction(
  entry: JournalEntry,
  { clock, wasFinal }: { readonly clock: Clock; readonly wasFinal: boolean },
): PendingTransaction {
  const now = clock.monotonic();
  // By the wall clock, since an earlier process recorded it. If the clock was set back, the age is 0.
  const at = now - Math.max(0, clock.now() - entry.recordedAt);
  const variants = entry.variants.map((variant) => parseVariant(variant, at));
  const [newest] = variants;
  if (newest === undefined) throw new Error(`the journal's entry of nonce ${entry.nonce} is empty`);
  const state: TransactionState = {
    ...newTransaction(entry.sender, newest.request),
    nonce: entry.nonce,
    variants: variants.map(({ variant }) => variant),
    isRecorded: true,
    reach: "unknown",
    isNoOp: newest.request.data.length === 0, // Every call of the registry has data.
    isRecovered: true,
    wasFinal,
    isAnswered: true,
  };
  return new PendingTransaction(state, { at, trackedSince: now, order: 0, lookUpAt: now });
}

type Prices = Pick<ReturnType<typeof parseTransaction>, "type" | "maxFeePerGas" | "maxPriorityFeePerGas" | "gasPrice">;

interface ParsedVariant {
  readonly request: TransactionRequest;
  readonly variant: Variant;
}

function parseVariant({ hash, raw }: SignedVariant, signedAt: number): ParsedVariant {
  const { to, data = "0x", gas = 0n, ...prices } = parseTransaction(toHex(raw));
  if (to === undefined || to === null) throw new Error(`the journal's transaction ${hash} has no recipient`);
  return {
    // It may be any transaction, and nobody waits for its logs.
    request: { to, data: fromHex(data), gas: Number(gas), logsExpected: undefined, mayLackLogs: true },
    variant: { hash, raw, fees: toFees(prices), signedAt, signedAtBlock: 0 },
  };
}

/** The price that a signed transaction offers. */
export function toFees({ type, maxFeePerGas, maxPriorityFeePerGas, gasPrice }: Prices): Fees {
  return type === "eip1559"
    ? { kind: "eip1559", maxFeePerGas: maxFeePerGas ?? 0n, maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n }
    : { kind: "legacy", gasPrice: gasPrice ?? 0n };
}
