import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import { keccak256, toBuffer, toHex, fromLatin1 } from "@stele/eth/node";
import type { Block, BlockHead, ExecutedTransaction } from "../blocks/block.ts";
import { decodeHeader, encodeHeader } from "../blocks/header.ts";
import { encodeStoredReceipt } from "../blocks/receipt-codec.ts";
import { BlockDamagedError, readVerifiedBlock } from "../chain/verified-blocks.ts";
import { ChainDamagedError } from "../chain-damaged-error.ts";
import type { StateDatabase } from "../state/checked-source.ts";
import type { NodeChanges } from "../state/node-changes.ts";
import { decodeEffects, encodeEffects } from "./effects-codec.ts";
import type { ChainEnd, HeadFile } from "./head-file.ts";
import { decodeExecuted, type TransactionRow } from "./executed-rows.ts";
import type { CloseOptions, OwnedDatabase } from "./open-database.ts";
import { fromPlace, logKeys, type Place, toHashKey, toPlace } from "./places.ts";
import { isTransientFault } from "./transient-fault.ts";
import { placesTable } from "./schema.ts";
import { hasTable, setAside } from "./set-aside.ts";
import { type BlockEffects, type IndexEntry, UnsavedEffects } from "./unsaved-effects.ts";

/** Number of rows of the index that the first query for a key reads: a search for rare logs may need only a few places of a busy contract. */
const FIRST_PLACES_PAGE = 100;
/** Maximum number of rows of the index that one query reads: a terminated thread ends only between two queries. */
const PLACES_PAGE_MAX = 10_000;

/** Everything that one block adds. */
export interface BlockCommit {
  readonly block: Block;
  readonly nodes: NodeChanges;
  readonly codes: readonly Uint8Array[];
}

/**
 * The tables of the chain. A block is written whole or not at all, in one SQL transaction. The effects of the newest blocks (`UnsavedEffects`) are in memory
 * and in one row for each block, until `save` writes them into the tables; reads look into memory first.
 */
export class ChainDatabase implements StateDatabase {
  // The statements do not keep the database alive: keep a reference to it as long as they are used.
  readonly #database: DatabaseSyncInstance;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #owned: OwnedDatabase | undefined;
  readonly #headFile: HeadFile | undefined;
  readonly #unsaved = new UnsavedEffects();
  /** Whether this process has begun a table `new_places` and not put it in place yet. */
  #isRebuilding = false;
  #hasRestoredEntries = false;

  /** `owned` is the database with its lock, if this process writes it. `headFile` belongs to a chain that is in a file. */
  constructor(database: DatabaseSyncInstance, owned?: OwnedDatabase, headFile?: HeadFile) {
    this.#database = database;
    this.#owned = owned;
    this.#headFile = headFile;
    this.#statements = prepareStatements(database);
  }

  /**
   * Writes a block, or nothing if this throws. `within` may write in the same SQL transaction. The block's effects go into one row of a few pages; in their
   * tables, each node and each index entry would cost a page.
   */
  commitBlock({ block, nodes, codes }: BlockCommit, within: () => void = () => undefined): void {
    const number = Number(block.header.number);
    const effects = { nodes, places: indexEntries(block) };
    const encoded = encodeEffects(effects);
    if (number > 0) this.#headFile?.prepare({ number: BigInt(number) - 1n, hash: toHex(block.header.parentHash) });
    this.#write(() => {
      this.#insertBlock(block);
      for (const code of codes) this.#statements.insertCode.run(keccak256(code), code);
      this.#statements.insertUnsaved.run(number, encoded);
      within();
    });
    this.#headFile?.write(endOf(block));
    this.#unsaved.add(number, effects, encoded.length);
  }

  /** Bytes of effects that wait for {@link save}. */
  get unsavedBytes(): number {
    return this.#unsaved.bytes;
  }

  /** Writes the unsaved effects into their tables: each node once, however often blocks overwrote it. */
  save(): void {
    const { nodes, places } = this.#unsaved.sorted();
    this.#write(() => {
      for (const [key, node] of nodes) this.#writeNode(key, node === undefined ? undefined : fromLatin1(node));
      for (const [key, found] of places) for (const place of found) this.#statements.insertPlace.run(key, place);
      this.#statements.deleteUnsaved.run();
    });
    this.#unsaved.clear();
  }

  /**
   * Loads unsaved effects that another thread or process wrote. Call this at the start of a snapshot or a process. If a damaged index entry is not made of
   * integers, derives the entries of its block again: the table would refuse the damaged entry, and no later block could be saved.
   * @throws ChainDamagedError if a row cannot be decoded.
   */
  loadUnsaved(): void {
    const { first } = this.#statements.selectFirstUnsaved.get() as { first: number | null }; // The column of the statement.
    if (first !== (this.#unsaved.first ?? null)) this.#unsaved.clear();
    if (first === null) return;
    const after = this.#unsaved.first === undefined ? first - 1 : this.#unsaved.last;
    for (const row of this.#statements.selectUnsaved.all(after)) {
      const { number, effects } = row as { number: number; effects: Uint8Array }; // The columns of the statement.
      const decoded = decodeRow(number, effects);
      const intact = decoded.places.filter(
        ({ key, place }) => Number.isSafeInteger(key) && Number.isSafeInteger(place),
      );
      const isWhole = intact.length === decoded.places.length;
      const places = isWhole ? intact : this.#restoreEntries(number, intact);
      this.#unsaved.add(number, { ...decoded, places }, effects.length);
      this.#hasRestoredEntries ||= !isWhole;
    }
  }

  /** Derives a block's index entries from the block. Returns `intact` if the block is damaged too, since a chain must open before it can be repaired. */
  #restoreEntries(number: number, intact: readonly IndexEntry[]): readonly IndexEntry[] {
    try {
      return indexEntries(readVerifiedBlock(this, BigInt(number)));
    } catch (error) {
      if (error instanceof BlockDamagedError) return intact;
      throw error;
    }
  }

  /** Whether damaged index entries were taken from their block, or left out, since the last call. */
  takeRestored(): boolean {
    const hasRestored = this.#hasRestoredEntries;
    this.#hasRestoredEntries = false;
    return hasRestored;
  }

  /** Runs `work` on the chain as it is now; blocks that are committed meanwhile do not show. */
  async readSnapshot<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#database.exec("BEGIN");
    try {
      this.loadUnsaved();
      return await work();
    } finally {
      this.#database.exec("COMMIT");
    }
  }

  findHead(): BlockHead | undefined {
    return toHead(this.#statements.selectLastBlock.get());
  }

  findBlockHead(number: bigint): BlockHead | undefined {
    return toHead(this.#statements.selectBlock.get(Number(number)));
  }

  readExecuted(number: bigint): ExecutedTransaction[] {
    const from = toPlace(number, 0);
    const rows = this.#statements.selectTransactions.all(from, toPlace(number + 1n, 0));
    return decodeExecuted(rows as readonly unknown[] as readonly TransactionRow[]); // the columns are those of the statement
  }

  /** A block's transactions as they are stored, without any check. */
  readRows(number: bigint): readonly TransactionRow[] {
    const rows = this.#statements.selectTransactions.all(toPlace(number, 0), toPlace(number + 1n, 0));
    return rows.map((row) => row as TransactionRow); // the columns are those of the statement
  }

  replaceRow({ place, raw, receipt }: TransactionRow): void {
    this.#statements.updateTransaction.run(raw, receipt, place);
  }

  /** Undoes the changes of `change` if it returns false or throws. Returns what `change` returns. */
  tryChange(change: () => boolean): boolean {
    this.#database.exec("BEGIN IMMEDIATE");
    let isDone = false;
    try {
      isDone = change();
    } finally {
      this.#database.exec(isDone ? "COMMIT" : "ROLLBACK");
    }
    return isDone;
  }

  /** The places under a key of the index, from `from` up to before `to`, in order. Reads them as they are needed, since a key may have millions. */
  *readPlaces(key: number, from: Place = 0, to: Place = Number.MAX_SAFE_INTEGER): Generator<Place> {
    for (let next = from, page = FIRST_PLACES_PAGE; ; page = Math.min(page * 10, PLACES_PAGE_MAX)) {
      const rows = this.#statements.selectPlaces.all(key, next, to, page) as { place: number }[];
      for (const { place } of rows) yield place;
      if (rows.length < page) break;
      next = (rows.at(-1)?.place ?? 0) + 1;
    }
    for (const place of this.#unsaved.findPlaces(key)) if (place >= from && place < to) yield place;
  }

  /** The newest block whose effects are in the tables; -1 for none. */
  get savedUpTo(): number {
    const newest = Number(this.findHead()?.header.number ?? -1n);
    return this.#unsaved.first === undefined ? newest : this.#unsaved.first - 1;
  }

  /** Rows that follow an entry in the index of hashes and logs, as the file orders them; undefined if they cannot be read. */
  tryReadEntries({ key, place }: IndexEntry, limit: number): readonly IndexEntry[] | undefined {
    try {
      return this.#statements.selectEntries.all(key, place, limit) as IndexEntry[]; // The columns of the statement.
    } catch (error) {
      if (isTransientFault(error)) throw error;
      return undefined;
    }
  }

  /** Creates a new index of hashes and logs beside the present one, or continues with the one of a rebuild that failed in this process. */
  beginPlaces(): void {
    if (this.#isRebuilding) return;
    if (hasTable(this.#database, "new_places")) setAside(this.#database, "new_places"); // A table of an earlier process may be damaged by now.
    this.#database.exec(placesTable("new_places"));
    this.#isRebuilding = true;
  }

  /** Adds entries to the new index; `isLast` then replaces the present one with it. */
  addNewPlaces(entries: readonly IndexEntry[], isLast: boolean): void {
    this.#write(() => {
      const insert = this.#database.prepare("INSERT OR IGNORE INTO new_places (key, place) VALUES (?, ?)");
      for (const { key, place } of entries) insert.run(key, place);
      if (!isLast) return;
      setAside(this.#database, "places");
      this.#database.exec("ALTER TABLE new_places RENAME TO places");
    });
    if (isLast) this.#isRebuilding = false;
  }

  readNode(key: string): Uint8Array | undefined {
    if (this.#unsaved.hasNode(key)) return this.#unsaved.findNode(key);
    return this.#statements.selectNode.get(Buffer.from(key, "latin1"))?.node as Uint8Array | undefined;
  }

  /** Rewrites a node of the newest state. */
  replaceNode(key: string, node: Uint8Array): void {
    this.#write(() => this.#writeNode(key, node));
  }

  replaceCode(codeHash: Uint8Array, code: Uint8Array): void {
    this.#write(() => this.#statements.replaceCode.run(codeHash, code));
  }

  readCode(codeHash: Uint8Array): Uint8Array | undefined {
    return this.#statements.selectCode.get(codeHash)?.code as Uint8Array | undefined;
  }

  readSetting(name: string): string | undefined {
    return this.#statements.selectSetting.get(name)?.value as string | undefined;
  }

  writeSetting(name: string, value: string): void {
    this.#statements.insertSetting.run(name, value);
  }

  /** Length of the write-ahead log, in bytes. */
  get logBytes(): number {
    return this.#owned?.logBytes() ?? 0;
  }

  /**
   * Copies the write-ahead log into the database file, so that the log starts over. Returns whether all of it was copied: a reader may need the rest, or
   * another program may be copying it.
   */
  checkpoint(): boolean {
    const row = this.#database.prepare("PRAGMA wal_checkpoint(PASSIVE)").get();
    const { busy, log, checkpointed } = row as { busy: number; log: number; checkpointed: number }; // the columns of this pragma
    return busy === 0 && checkpointed >= log;
  }

  /** Copies the log into the file and deletes the log. With `keepsLog`, or if the file is no longer at its path, leaves both unchanged. */
  close(options: CloseOptions = {}): void {
    const keepsLog = options.keepsLog === true || this.#owned?.isMoved() === true;
    try {
      if (!keepsLog) this.#settle();
    } finally {
      this.#headFile?.close();
      if (this.#owned === undefined) this.#database.close();
      else this.#owned.close({ keepsLog });
    }
  }

  #settle(): void {
    this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    const head = this.findHead();
    if (head !== undefined && head.header.number > 0n) this.#headFile?.settle(endOf(head));
  }

  #insertBlock(block: Block): void {
    const { number } = block.header;
    this.#statements.insertBlock.run(Number(number), encodeHeader(block.header));
    for (const [index, { transaction, receipt }] of block.executed.entries()) {
      const place = toPlace(number, index);
      const stored = encodeStoredReceipt(receipt, transaction);
      this.#statements.insertTransaction.run(place, stored, transaction.raw);
    }
  }

  #write(statements: () => void): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      statements();
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  #rollBack(): void {
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // SQLite has already rolled back, for example on a full disk. `isTransaction` would tell that, but `guardCalls` does not guard it.
    }
  }

  #writeNode(key: string, node: Uint8Array | undefined): void {
    const bytes = Buffer.from(key, "latin1");
    if (node === undefined) this.#statements.deleteNode.run(bytes);
    else this.#statements.upsertNode.run(bytes, node);
  }
}

/** The index entries of a block: for its hash, and for the hash and the logs of each transaction. */
export function indexEntries(block: Block): IndexEntry[] {
  const { number } = block.header;
  const entries = [{ key: toHashKey(block.hash), place: toPlace(number, 0) }];
  for (const [index, { transaction, receipt }] of block.executed.entries()) {
    const place = toPlace(number, index);
    entries.push({ key: toHashKey(transaction.hash), place });
    for (const key of logKeys(receipt.logs)) entries.push({ key, place });
  }
  return entries;
}

/** Whether a block has this index entry. */
export function hasEntry({ hash, executed }: Pick<Block, "hash" | "executed">, { key, place }: IndexEntry): boolean {
  const { index } = fromPlace(place);
  if (index === 0 && key === toHashKey(hash)) return true;
  const found = executed[index];
  if (found === undefined) return false;
  return key === toHashKey(found.transaction.hash) || logKeys(found.receipt.logs).has(key);
}

function endOf({ hash, header }: BlockHead): ChainEnd {
  return { number: header.number, hash: toHex(hash) };
}

function decodeRow(number: number, effects: Uint8Array): BlockEffects {
  try {
    return decodeEffects(toBuffer(effects));
  } catch (cause) {
    throw new ChainDamagedError(`The state after block ${number} of the chain is damaged: it cannot be read.`, cause);
  }
}

function toHead(row: { header: Uint8Array } | undefined): BlockHead | undefined {
  return row === undefined ? undefined : { hash: keccak256(row.header), header: decodeHeader(row.header) };
}

function prepareStatements(database: DatabaseSyncInstance) {
  const prepare = (sql: string): StatementSyncInstance => database.prepare(sql);
  return {
    insertBlock: prepare("INSERT INTO blocks (number, header) VALUES (?, ?)"),
    insertTransaction: prepare("INSERT INTO transactions (place, receipt, raw) VALUES (?, ?, ?)"),
    updateTransaction: prepare("UPDATE transactions SET raw = ?, receipt = ? WHERE place = ?"),
    insertPlace: prepare("INSERT OR IGNORE INTO places (key, place) VALUES (?, ?)"),
    insertUnsaved: prepare("INSERT INTO unsaved (number, effects) VALUES (?, ?)"),
    deleteUnsaved: prepare("DELETE FROM unsaved"),
    selectFirstUnsaved: prepare("SELECT min(number) AS first FROM unsaved"),
    selectUnsaved: prepare("SELECT number, effects FROM unsaved WHERE number > ? ORDER BY number"),
    insertCode: prepare("INSERT OR IGNORE INTO codes (hash, code) VALUES (?, ?)"),
    replaceCode: prepare("INSERT OR REPLACE INTO codes (hash, code) VALUES (?, ?)"),
    insertSetting: prepare("INSERT INTO settings (name, value) VALUES (?, ?)"),
    upsertNode: prepare(
      "INSERT INTO nodes (key, node) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET node = excluded.node",
    ),
    deleteNode: prepare("DELETE FROM nodes WHERE key = ?"),
    selectLastBlock: prepare("SELECT header FROM blocks ORDER BY number DESC LIMIT 1"),
    selectBlock: prepare("SELECT header FROM blocks WHERE number = ?"),
    selectTransactions: prepare(
      "SELECT place, receipt, raw FROM transactions WHERE place >= ? AND place < ? ORDER BY place",
    ),
    selectPlaces: prepare("SELECT place FROM places WHERE key = ? AND place >= ? AND place < ? ORDER BY place LIMIT ?"),
    selectEntries: prepare("SELECT key, place FROM places WHERE (key, place) > (?, ?) ORDER BY key, place LIMIT ?"),
    selectNode: prepare("SELECT node FROM nodes WHERE key = ?"),
    selectCode: prepare("SELECT code FROM codes WHERE hash = ?"),
    selectSetting: prepare("SELECT value FROM settings WHERE name = ?"),
  };
}
