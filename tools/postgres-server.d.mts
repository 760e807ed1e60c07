/** A PostgreSQL server of one test, in a temporary folder. It does not sync, so that it is fast. */
export interface PostgresServer {
  /** The folder of its socket and its configuration. */
  readonly folder: string;
  /** Process id of its main process; undefined while it is halted. */
  readonly pid: number | undefined;
  /** URL of a database; by default of the initial one. */
  url(database?: string): string;
  /** Creates a database and returns its URL. */
  createDatabase(): Promise<string>;
  /** Creates a schema and returns its URL. This takes a tenth of the time of a database. */
  createSchema(): Promise<string>;
  /** Runs a query on a new connection, by default in the initial database. */
  query(sql: string, parameters?: readonly unknown[], url?: string): Promise<readonly Record<string, unknown>[]>;
  /** Stops the server. `fast` sends each session a message before it ends; `kill` does not. */
  halt(way: "fast" | "kill"): Promise<void>;
  /** Starts the server again after `halt`. */
  resume(): Promise<void>;
  /** Stops the server and deletes its folder. */
  remove(): Promise<void>;
}

/** Whether tests with PostgreSQL run here. With CHECKS_POSTGRES=required, they run and fail if PostgreSQL is not installed. */
export const hasPostgres: boolean;

/** Title of tests that need PostgreSQL. If it is not installed, the title says that they are left out. */
export function titleOf(title: string): string;

export interface PostgresServerOptions {
  /** Additional settings, as in `postgresql.conf`. */
  readonly settings?: readonly string[];
  readonly port?: number;
  /** Puts files into the data folder before the first start. */
  readonly prepareData?: (data: string) => void;
}

/** Starts a server. */
export function startPostgres(options?: PostgresServerOptions): Promise<PostgresServer>;
