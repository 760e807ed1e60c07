import type { PostgresPoolClient, PostgresQueryResult } from "kysely";
import type { PoolClient, QueryResult } from "pg";
import { StoreError } from "../store-error.ts";
import { toFailure } from "./errors.ts";

export interface ConnectionOptions {
  /** What messages call the database. */
  readonly description: string;
  /** After that long without an answer the connection counts as dead. */
  readonly answerMsMax: number;
  /** Called when the server has answered. */
  readonly onHeard: () => void;
  /** Told of a connection that broke. */
  readonly onLost: (error: StoreError) => void;
}

/** A connection on loan from the pool. One that is lost in a call goes back as such, and is never used again. */
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
      // PostgreSQL answers so, and not by an error, where an earlier statement of the transaction failed.
      if (sql === "commit" && result.command === "ROLLBACK") throw notCommitted(this.#options.description);
      return toResult(result);
    } catch (thrown) {
      throw this.#fail(thrown);
    }
  }

  /** What cannot be undone on a connection is undone by its end. */
  async #rollBack<Row>(): Promise<PostgresQueryResult<Row>> {
    await this.#run("rollback", []).catch((error: unknown) => {
      this.#lost ??= error instanceof StoreError ? error : toFailure(error, this.#options.description).error;
    });
    return { command: "SELECT", rowCount: 0, rows: [] };
  }

  #fail(thrown: unknown): StoreError {
    const { error, isConnectionLost } = toFailure(thrown, this.#options.description);
    if (!isConnectionLost) this.#options.onHeard();
    else {
      this.#lost = error;
      this.#options.onLost(error);
    }
    return error;
  }
}

function notCommitted(description: string): StoreError {
  return new StoreError("other", `${description} kept nothing of a change of which a part had failed`);
}

/** The driver types its rows as anything, and the query builder knows what they are; several statements at once give no rows. */
function toResult<Row>(result: QueryResult): PostgresQueryResult<Row> {
  if (Array.isArray(result)) return { command: "SELECT", rowCount: 0, rows: [] };
  return result as unknown as PostgresQueryResult<Row>;
}
