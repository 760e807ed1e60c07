import { MalformedError, RlpList, toInteger } from "@stele/eth";
import { keccak256, toHex } from "@stele/eth/node";
import type { JournalEntry } from "../../../ports/journal.ts";

/** Entries of a journal that the store returned, after a check. */
export interface CheckedEntries {
  /** Ascending by the nonce of the signed transaction. */
  readonly intact: readonly JournalEntry[];
  /** The damaged entries as they are stored. `intact` lacks them, or has them with another nonce or fewer versions. */
  readonly damaged: readonly JournalEntry[];
  /** The entries of `intact` that differ from the stored ones. */
  readonly repaired: readonly JournalEntry[];
}

/**
 * Checks each version against its hash, and takes the nonce from the signed transaction, not from the store. A damaged nonce would leave a gap before all
 * later transactions, and a damaged transaction cannot be resumed.
 */
export function checkEntries(entries: readonly JournalEntry[]): CheckedEntries {
  const byNonce = new Map<number, JournalEntry>();
  const damaged: JournalEntry[] = [];
  for (const entry of entries) {
    const found = findIntact(entry);
    if (found !== undefined && (found.nonce === entry.nonce || !byNonce.has(found.nonce)))
      byNonce.set(found.nonce, found);
    if (found !== entry) damaged.push(entry);
  }
  const intact = [...byNonce.values()].toSorted((left, right) => left.nonce - right.nonce);
  const stored = new Set(entries);
  return { intact, damaged, repaired: intact.filter((entry) => !stored.has(entry)) };
}

/** The nonce of an entry's newest version, without a check of its hash. The stored nonce may be damaged, so it is only the fallback. */
export function nonceOf({ variants: [newest], nonce }: JournalEntry): number {
  return (newest && findNonce(newest.raw)) ?? nonce;
}

/** The entry with its intact versions: the same object if nothing is damaged, undefined if no version is intact. */
function findIntact(entry: JournalEntry): JournalEntry | undefined {
  const variants = entry.variants.filter(({ hash, raw }) => toHex(keccak256(raw)) === hash);
  const [newest] = variants;
  const nonce = newest && findNonce(newest.raw);
  if (nonce === undefined) return undefined;
  return nonce === entry.nonce && variants.length === entry.variants.length ? entry : { ...entry, nonce, variants };
}

/** Largest type of a transaction (EIP-2718). A larger first byte begins a legacy transaction, which has no chain id before its nonce. */
const typeMax = 0x7f;

function findNonce(raw: Uint8Array): number | undefined {
  try {
    const isTyped = (raw[0] ?? 0) <= typeMax;
    const fields = new RlpList(raw, { start: isTyped ? 1 : 0, end: raw.length });
    if (isTyped) fields.string();
    return toInteger(fields.string());
  } catch (error) {
    if (error instanceof MalformedError) return undefined;
    throw error;
  }
}
