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

/** Options of every transaction of a dialect. */
export interface TransactionTerms {
  /** Statements sent in the same message as `begin`; empty for none. */
  readonly settings: string;
  /** Time limit of one statement, in milliseconds. */
  readonly statementMsMax: number;
  /** Overrides the usual time that an answer may take on the network, in milliseconds. */
  readonly answerDelayMsMax?: number;
}

/** PostgreSQL for the query builder, over a pool that dialects share. The owner of the pool closes it. */
export class SharedPoolDialect extends PostgresDialect {
  readonly #config: PostgresDialectConfig;
  readonly #settings: string;

  constructor(pool: Pick<ConnectionPool, "connect">, { settings, statementMsMax, ...terms }: TransactionTerms) {
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
