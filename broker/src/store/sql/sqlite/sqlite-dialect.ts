import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import type { Speed } from "../mutex.ts";
import type { SqliteSession, Synchronous } from "./session.ts";

/** SQLite for the query builder, over a session that others may share; `synchronous` applies to every commit made through it, `speed` to its turns. */
export function createSqliteDialect(session: SqliteSession, synchronous: Synchronous, speed: Speed): Dialect {
  return {
    createDriver: () => new SqliteDriver(session, synchronous, speed),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: (database) => new SqliteIntrospector(database),
  };
}

class SqliteDriver implements Driver {
  readonly #session: SqliteSession;
  readonly #synchronous: Synchronous;
  readonly #speed: Speed;

  constructor(session: SqliteSession, synchronous: Synchronous, speed: Speed) {
    this.#session = session;
    this.#synchronous = synchronous;
    this.#speed = speed;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<DatabaseConnection> {
    return this.#session.acquire(this.#synchronous, this.#speed);
  }

  async releaseConnection(): Promise<void> {
    this.#session.release();
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("begin"));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw("commit"));
  }

  async rollbackTransaction(): Promise<void> {
    this.#session.rollback();
  }

  /** The owner of the session closes it. */
  async destroy(): Promise<void> {}
}
