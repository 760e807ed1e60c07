import { type PostgresServer, startPostgres } from "../../tools/postgres-server.mjs";
import { findFreePort } from "./free-port.ts";

export { hasPostgres, titleOf } from "../../tools/postgres-server.mjs";

/** A PostgreSQL server that brokers reach over TCP. */
export class DatabaseServer implements AsyncDisposable {
  readonly port: number;
  readonly #server: PostgresServer;

  private constructor(port: number, server: PostgresServer) {
    this.port = port;
    this.#server = server;
  }

  static async start(): Promise<DatabaseServer> {
    const port = await findFreePort();
    const settings = ["listen_addresses=127.0.0.1", "max_connections=200"];
    return new DatabaseServer(port, await startPostgres({ port, settings }));
  }

  async createDatabase(): Promise<Database> {
    return new Database(this, await this.#server.createDatabase());
  }

  query(sql: string, parameters: readonly unknown[], url: string): Promise<readonly Record<string, unknown>[]> {
    return this.#server.query(sql, parameters, url);
  }

  /** kill -9: sessions get no message. */
  kill(): Promise<void> {
    return this.#server.halt("kill");
  }

  resume(): Promise<void> {
    return this.#server.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.remove();
  }
}

/** A database that the nodes of one cluster share. */
export class Database {
  readonly server: DatabaseServer;
  readonly #url: string;

  constructor(server: DatabaseServer, url: string) {
    this.server = server;
    this.#url = url;
  }

  /** URL of this database for a broker. `port` is a TCP port of this machine: by default the server's, or that of a proxy. */
  address(port: number = this.server.port): string {
    return `postgres://stele@127.0.0.1:${port}/${this.#url.split("/").at(-1) ?? ""}`;
  }

  /** Runs a query directly, past any proxy. */
  query(sql: string, parameters: readonly unknown[] = []): Promise<readonly Record<string, unknown>[]> {
    return this.server.query(sql, parameters, this.#url);
  }
}
