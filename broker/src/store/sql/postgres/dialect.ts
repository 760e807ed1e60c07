import {
  CompiledQuery,
  type DatabaseConnection,
  type Driver,
  PostgresDialect,
  type PostgresDialectConfig,
  PostgresDriver,
} from "kysely";
import { answerDelayMsMax } from "./limits.ts";
import type { ConnectionPool } from "./pool.ts";

/** What every transaction made through a dialect is held to. */
export interface TransactionTerms {
  /** Statements that go with the beginning, in the same message; empty for none. */
  readonly settings: string;
  /** Longest that one of its statements runs, in milliseconds. */
  readonly statementMsMax: number;
  /** Other time for an answer on its way than the usual one. */
  readonly answerDelayMsMax?: number;
}

/** PostgreSQL for the query builder, over a pool that dialects share and whoever opened it closes. */
export class SharedPoolDialect extends PostgresDialect {
  readonly #config: PostgresDialectConfig;
  readonly #settings: string;

  constructor(pool: ConnectionPool, { settings, statementMsMax, ...terms }: TransactionTerms) {
    const answerMsMax = statementMsMax + (terms.answerDelayMsMax ?? answerDelayMsMax);
    const config = { pool: { connect: async () => pool.connect(answerMsMax), end: async () => {} } };
    super(config);
    this.#config = config;
    this.#settings = settings;
  }

  override createDriver(): Driver {
    return new SettingDriver(this.#config, this.#settings);
  }
}

class SettingDriver extends PostgresDriver {
  readonly #begin: CompiledQuery;

  constructor(config: PostgresDialectConfig, settings: string) {
    super(config);
    this.#begin = CompiledQuery.raw(settings === "" ? "begin" : `begin; ${settings}`);
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(this.#begin);
  }
}
