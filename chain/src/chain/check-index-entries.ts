import { CHECKED_BYTES_MAX } from "../limits.ts";
import type { CheckedIndexEntries } from "../messages.ts";
import { type ChainDatabase, indexEntries } from "../storage/chain-database.ts";
import type { Place } from "../storage/places.ts";
import type { IndexEntry } from "../storage/unsaved-effects.ts";
import { BlockDamagedError, readVerifiedBlock } from "./verified-blocks.ts";

/** Maximum number of blocks whose entries one step derives. */
const BLOCKS_PER_STEP = 16;
/** Maximum number of rows of the index that one step reads. */
const ROWS_PER_STEP = 2_000;

type Steps<Result> = Generator<number, Result>;
type Outcome = Pick<CheckedIndexEntries, "isDamaged">;

/** A sum over entries that does not depend on their order. Two sums of 32 bits: different entries rarely have equal ones. */
class EntrySum {
  #low = 0;
  #high = 0;
  #count = 0;

  add(key: number, place: Place): void {
    const [keyHigh, placeHigh] = [Math.floor(key / 2 ** 32), Math.floor(place / 2 ** 32)];
    this.#low = (this.#low + mix(key ^ mix(keyHigh ^ mix(place ^ mix(placeHigh))))) >>> 0;
    this.#high = (this.#high + mix(place ^ mix(placeHigh ^ mix(key ^ mix(keyHigh + 1))))) >>> 0;
    this.#count += 1;
  }

  equals(other: EntrySum): boolean {
    return this.#low === other.#low && this.#high === other.#high && this.#count === other.#count;
  }
}

/** A step of MurmurHash3. */
function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35);
  return mixed ^ (mixed >>> 16);
}

/**
 * Compares the index of hashes and logs (the table `places`) with the blocks. Rebuilds the whole index if it differs: SQLite searches rows by their order, so a
 * changed row also hides others. Yields the number of entries that each short step read. Ends early at a damaged block, which the check of the blocks reports.
 * A rebuild waits while `isHeld()`: it would fill the log, which nobody may copy into the file meanwhile.
 */
export function* checkIndexEntries(database: ChainDatabase, isHeld: () => boolean): Steps<Outcome> {
  try {
    return yield* compareAndRebuild(database, isHeld);
  } catch (error) {
    if (!(error instanceof BlockDamagedError)) throw error;
    return { isDamaged: false };
  }
}

function* compareAndRebuild(database: ChainDatabase, isHeld: () => boolean): Steps<Outcome> {
  const upTo = database.savedUpTo;
  const expected = yield* sumOfBlocks(database, upTo);
  const found = yield* sumOfRows(database, upTo);
  // This also reports unsaved entries that were damaged when the chain started. The start derived them again from their blocks. If a block was damaged too, its
  // entries are missing: the next check finds that once the block is repaired and its entries should be in the table.
  if (found?.equals(expected) === true) return { isDamaged: database.takeRestored() };
  yield* rebuild(database, isHeld);
  return { isDamaged: true };
}

/** Derives the entries of blocks from `from` to `to`, at most as many as one step may. `next` is the block after them. */
function deriveStep(
  database: ChainDatabase,
  from: number,
  to: number,
): { readonly entries: readonly IndexEntry[]; readonly next: number } {
  const entries: IndexEntry[] = [];
  let [next, bytes] = [from, 0];
  for (; next <= to && next < from + BLOCKS_PER_STEP && bytes < CHECKED_BYTES_MAX; next += 1) {
    const block = readVerifiedBlock(database, BigInt(next));
    for (const entry of indexEntries(block)) entries.push(entry);
    for (const { transaction } of block.executed) bytes += transaction.raw.length;
  }
  return { entries, next };
}

function* sumOfBlocks(database: ChainDatabase, upTo: number): Steps<EntrySum> {
  const sum = new EntrySum();
  for (let number = 0; number <= upTo; ) {
    const { entries, next } = deriveStep(database, number, upTo);
    for (const { key, place } of entries) sum.add(key, place);
    number = next;
    yield entries.length;
  }
  return sum;
}

/** The sum over the rows of the index; undefined if they are out of order or unreadable. Skips rows of blocks after `upTo`, which may be saved meanwhile. */
function* sumOfRows(database: ChainDatabase, upTo: number): Steps<EntrySum | undefined> {
  const sum = new EntrySum();
  for (let after = { key: -1, place: 0 }, isMore = true; isMore; ) {
    const rows = database.tryReadEntries(after, ROWS_PER_STEP);
    if (rows === undefined) return undefined;
    for (const row of rows) {
      if (row.key < after.key || (row.key === after.key && row.place <= after.place)) return undefined;
      if (row.place < (upTo + 1) * 2 ** 20) sum.add(row.key, row.place);
      after = row;
    }
    isMore = rows.length === ROWS_PER_STEP;
    yield rows.length;
  }
  return sum;
}

/** Builds a new table. The step that reaches the newest saved block replaces the old table with it. */
function* rebuild(database: ChainDatabase, isHeld: () => boolean): Steps<void> {
  for (let number = 0; ; ) {
    while (isHeld()) yield 0;
    database.beginPlaces();
    const upTo = database.savedUpTo;
    const { entries, next } = deriveStep(database, number, upTo);
    number = next;
    const isDone = next > upTo;
    database.addNewPlaces(entries, isDone);
    yield entries.length;
    if (isDone) return;
  }
}
