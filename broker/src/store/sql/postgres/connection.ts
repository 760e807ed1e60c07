import type { PostgresPoolClient, PostgresQueryResult } from "kysely";
import type { PoolClient, QueryResult } from "pg";
import { StoreError } from "../store-error.ts";
import { toFailure } from "./errors.ts";

export interface ConnectionOptions {
  /** Name of the database in messages. */
  readonly description: string;
  /** Time without an answer after which the connection counts as dead, in milliseconds. */
  readonly answerMsMax: number;
  /** Called after each answer of the server. */
  readonly onHeard: () => void;
  /** Called when the connection breaks during a call. */
  readonly onLost: (error: StoreError) => void;
  /** Called when the server says that its data is damaged. */
  readonly onDamage: (error: StoreError) => void;
}

/** A connection on loan from the pool. A connection that breaks during a call is returned as broken and never reused. */
export class PostgresConnection implements PostgresPoolClient {
  readonly #client: PoolClient;
  readonly #options: ConnectionOptions;
  #lost: StoreError | undefined;

  constructor(client: PoolClient, options: ConnectionOptions) {
    this.#client = client;
    this.#options = options;
  }

  query<Row>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<Row>>;
  query(cursor: object): never;
  query<Row>(sql: string | object, parameters: readonly unknown[] = []): Promise<PostgresQueryResult<Row>> {
    if (typeof sql !== "string") throw new Error("the store reads in pages, not in streams");
    if (sql === "rollback") return this.#rollBack();
    return this.#run(sql, parameters);
  }

  release(): void {
    this.#client.release(this.#lost !== undefined);
  }

  async #run<Row>(sql: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<Row>> {
    if (this.#lost !== undefined) throw this.#lost;
    try {
      const config = { text: sql, values: [...parameters], query_timeout: this.#options.answerMsMax };
      const result = await this.#client.query(config);
      this.#options.onHeard();
      // PostgreSQL answers a commit like this, and not with an error, if an earlier statement of the transaction failed.
      if (sql === "commit" && result.command === "ROLLBACK") throw notCommitted(this.#options.description);
      return toResult(result);
    } catch (thrown) {
      throw this.#fail(thrown);
    }
  }

  /** Rolls the transaction back. Never rejects: if the rollback fails, the pool closes the connection, which undoes the transaction too. */
  async #rollBack<Row>(): Promise<PostgresQueryResult<Row>> {
    await this.#run("rollback", []).catch((error: unknown) => {
      this.#lost ??= error instanceof StoreError ? error : toFailure(error, this.#options.description).error;
    });
    return { command: "SELECT", rowCount: 0, rows: [] };
  }

  #fail(thrown: unknown): StoreError {
    const { error, isConnectionLost } = toFailure(thrown, this.#options.description);
    if (error.fault === "corrupt") this.#options.onDamage(error);
    if (!isConnectionLost) this.#options.onHeard();
    else {
      this.#lost = error;
      this.#options.onLost(error);
    }
    return error;
  }
}

function notCommitted(description: string): StoreError {
  return new StoreError("other", `${description} undid a transaction because one of its statements failed`);
}

/** The driver's result for the query builder, which knows the types of its rows. Several statements in one query return no rows. */
function toResult<Row>(result: QueryResult): PostgresQueryResult<Row> {
  if (Array.isArray(result)) return { command: "SELECT", rowCount: 0, rows: [] };
  return result as unknown as PostgresQueryResult<Row>;
}
