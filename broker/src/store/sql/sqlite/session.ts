import type { DatabaseConnection, QueryResult } from "kysely";
import { createLoopSlices } from "../../../lib/system/loop-slices.ts";
import { isNumberTooLarge, toStoreError } from "./errors.ts";
import { chunksOf } from "../../../lib/chunks.ts";
import { type Speed, TwoSpeedMutex } from "../mutex.ts";
import type { Prepared } from "../prepared.ts";
import { StoreError, type StoreFault } from "../store-error.ts";
import type { NativeDatabase, NativeStatement, SqliteValue } from "./native.ts";

/** Durability of a commit: FULL syncs the write-ahead log to the disk, NORMAL leaves that to the next FULL commit. */
export type Synchronous = "FULL" | "NORMAL";

/** Maximum number of cached statements. A full cache is cleared, so that the many statements that a new store runs once do not keep out frequent ones. */
export const statementsCachedMax = 100;

/** Size of the write-ahead log, in pages, at which SQLite copies it into the database: 4 MiB, so that one copy takes a few milliseconds. */
export const logPagesMax = 1024;

/** Maximum number of rows written before the session checks whether other work is due for a turn of the event loop. */
const rowsPerPauseMax = 32;

interface CachedStatement {
  readonly statement: NativeStatement;
  readonly hasRows: boolean;
}

export interface SqliteSessionOptions {
  /** Name of the database in messages. */
  readonly description: string;
  /** Called for each failure that lasts until the operator repairs the disk or the file. */
  readonly onFault: (error: StoreError) => void;
  /** Whether closing must leave the file and its log unchanged. */
  readonly keepsLog: () => boolean;
}

/** Databases that stay open until the process ends: a close, also by garbage collection, would copy the log into the file and delete the log. */
const unclosed = new Set<NativeDatabase>();

export function leaveOpen(database: NativeDatabase): void {
  unclosed.add(database);
}

const lastingFaults: ReadonlySet<StoreFault> = new Set(["full", "io", "corrupt", "read-only"]);

/** A connection to a database, which callers use in turn. */
export class SqliteSession implements DatabaseConnection {
  readonly #database: NativeDatabase; // Its statements alone would not keep it from garbage collection.
  readonly #options: SqliteSessionOptions;
  readonly #mutex = new TwoSpeedMutex();
  readonly #slices = createLoopSlices();
  readonly #statements = new Map<string, CachedStatement>();
  #synchronous: Synchronous | undefined;
  #isOpen = true;

  constructor(database: NativeDatabase, options: SqliteSessionOptions) {
    this.#database = database;
    this.#options = options;
  }

  /**
   * Waits for its turn, then sets the durability of the caller's commits. Each FULL commit waits for the disk, and clients can cause thousands of them. Give
   * such commits the speed `slow`: then they do not delay the index, which every publish waits for.
   */
  async acquire(synchronous: Synchronous, speed: Speed): Promise<this> {
    await this.#mutex.acquire(speed);
    try {
      this.#setSynchronous(synchronous);
    } catch (error) {
      this.#mutex.release();
      throw error;
    }
    return this;
  }

  release(): void {
    this.#mutex.release();
  }

  /** Runs one statement, synchronously on the event loop's thread: without slices, a caller of many statements would block the loop. */
  async executeQuery<Row>(query: {
    readonly sql: string;
    readonly parameters: readonly unknown[];
  }): Promise<QueryResult<Row>> {
    const pause = this.#slices.pause();
    if (pause !== undefined) await pause;
    return this.#run(query.sql, query.parameters as readonly SqliteValue[]); // SQLite refuses any other value.
  }

  /**
   * Runs one statement, which returns at most one row, for each of the values. There is no promise for each: a separate query takes longer than SQLite needs
   * for a row (measured: 9 µs against 4). Call it inside a transaction: outside of one, a failed commit of a statement that returns a row is not reported.
   */
  async executeEach<Values, Row>(query: Prepared<Values, Row>, values: readonly Values[]): Promise<readonly Row[]> {
    const rows: Row[] = [];
    const bound: unknown[] = [];
    for (const chunk of chunksOf(values, rowsPerPauseMax)) {
      const pause = this.#slices.pause();
      if (pause !== undefined) await pause;
      this.#wrapped(() => {
        const { statement } = this.#prepare(query.sql);
        for (const one of chunk) {
          const parameters = query.parametersOf(one, bound) as readonly SqliteValue[]; // SQLite refuses any other value.
          // `run` would return an object, which takes a third of the time of an update, and `all` throws errors without a code.
          const row = statement.get(...parameters);
          if (row !== undefined) rows.push(row as Row); // As in #run.
        }
      });
    }
    return rows;
  }

  streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error("the store reads in pages, not in streams");
  }

  /** Rolls an open transaction back; a failed commit may have done so already. */
  rollback(): void {
    if (this.#database.isTransaction) this.#run("rollback", []);
  }

  /** See HeldFile. */
  async hold(meanwhile: () => Promise<boolean>): Promise<boolean> {
    await this.acquire("FULL", "slow");
    let isHeld = false;
    try {
      if (!this.#copyLog()) return false;
      this.setLogPages(0);
      isHeld = await meanwhile();
      return isHeld;
    } finally {
      if (!isHeld) this.setLogPages(logPagesMax);
      this.release();
    }
  }

  /** Sets the size of the log, in pages, at which a commit copies it into the file; 0 for never. Uses `exec`: the pragma takes effect when it is compiled. */
  setLogPages(pages: number): void {
    if (this.#isOpen) this.#wrapped(() => this.#database.exec(`pragma wal_autocheckpoint = ${pages}`));
  }

  /** Copies the log into the file. Returns whether the file now has all commits. */
  #copyLog(): boolean {
    const { rows } = this.#run<{ log: number; checkpointed: number }>("pragma wal_checkpoint(passive)", []);
    return rows.every(({ log, checkpointed }) => checkpointed >= log);
  }

  async close(): Promise<void> {
    await this.#mutex.acquire("slow");
    this.#mutex.release(); // After this turn, quick callers that were waiting come first.
    await this.#mutex.acquire("slow");
    try {
      if (!this.#isOpen) return;
      this.#isOpen = false;
      if (this.#options.keepsLog()) return leaveOpen(this.#database);
      this.#wrapped(() => {
        try {
          letGo(this.#database);
        } finally {
          this.#database.close();
        }
      });
    } finally {
      this.#mutex.release();
    }
  }

  /**
   * Sets the durability of later commits. Uses `exec`, since this pragma takes effect when it is compiled, not when it runs. SQLite refuses the pragma
   * within a transaction. A FULL commit syncs the whole log file, with every earlier NORMAL commit (seen in a trace of system calls).
   */
  #setSynchronous(synchronous: Synchronous): void {
    if (this.#synchronous === synchronous) return;
    this.#synchronous = undefined;
    this.#wrapped(() => this.#database.exec(`pragma synchronous = ${synchronous}`));
    this.#synchronous = synchronous;
  }

  #run<Row>(sql: string, parameters: readonly SqliteValue[]): QueryResult<Row> {
    return this.#wrapped(() => {
      const { statement, hasRows } = this.#prepare(sql);
      // The query builder's types give the type of the rows.
      if (hasRows) return { rows: readAll(statement, sql, parameters) as Row[] };
      return { rows: [], numAffectedRows: BigInt(statement.run(...parameters).changes) };
    });
  }

  #prepare(sql: string): CachedStatement {
    const cached = this.#statements.get(sql);
    if (cached !== undefined) return cached;
    const statement = this.#database.prepare(sql);
    const prepared = { statement, hasRows: statement.columns().length > 0 };
    if (this.#statements.size >= statementsCachedMax) this.#statements.clear();
    this.#statements.set(sql, prepared);
    return prepared;
  }

  #wrapped<Result>(action: () => Result): Result {
    try {
      return action();
    } catch (error) {
      const failure = toStoreError(error, this.#options.description);
      if (failure instanceof StoreError && lastingFaults.has(failure.fault)) this.#options.onFault(failure);
      throw failure;
    }
  }
}

/**
 * Reads all rows. A damaged row may have an integer that JavaScript cannot represent: it is rounded, and the row's own check refuses it. Only a `select` is
 * run again for that: other statements have already changed their rows.
 */
function readAll(statement: NativeStatement, sql: string, parameters: readonly SqliteValue[]): readonly unknown[] {
  try {
    return statement.all(...parameters);
  } catch (error) {
    if (!isNumberTooLarge(error) || !sql.startsWith("select ")) throw error;
  }
  statement.setReadBigInts(true);
  try {
    return statement.all(...parameters).map(toNumbers);
  } finally {
    statement.setReadBigInts(false);
  }
}

function toNumbers(row: unknown): unknown {
  const values = Object.entries(row as Readonly<Record<string, unknown>>); // The driver returns rows as objects.
  return Object.fromEntries(values.map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value]));
}

/**
 * Releases the file before the close: `@photostructure/sqlite` closes only when its statements are garbage-collected, and would hold the
 * lock until then. Leaving WAL mode copies the log into the database, so that a copy of the one file is complete.
 */
function letGo(database: NativeDatabase): void {
  database.exec("pragma journal_mode = delete");
  database.exec("pragma locking_mode = normal");
  database.exec("select count(*) from sqlite_schema"); // The next access releases the lock.
}
