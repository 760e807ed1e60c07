/** A PostgreSQL server of a test's own, in a folder that goes with it. It does not sync, so that it is fast. */
export interface PostgresServer {
  /** The folder of its socket and its configuration. */
  readonly folder: string;
  /** Of its first process, whose children the others are; undefined while it is halted. */
  readonly pid: number | undefined;
  /** The address of a database; of the one that is there from the start when none is named. */
  url(database?: string): string;
  /** The address of an empty database. */
  createDatabase(): Promise<string>;
  /** The address of an empty schema, which takes a tenth of the time of a database. */
  createSchema(): Promise<string>;
  /** What a query answers, on a connection of its own; in the database that is there from the start when none is named by its address. */
  query(sql: string, parameters?: readonly unknown[], url?: string): Promise<readonly Record<string, unknown>[]>;
  /** Ends it: every session is told (`fast`), or none is (`kill`). */
  halt(way: "fast" | "kill"): Promise<void>;
  /** Starts it again after `halt`. */
  resume(): Promise<void>;
  /** Halts it and deletes its folder. */
  remove(): Promise<void>;
}

/** Whether tests with PostgreSQL run here. Where they must (CHECKS_POSTGRES=required), they fail without it. */
export const hasPostgres: boolean;

/** The title of tests that need PostgreSQL; it says so where they are left out. */
export function titleOf(title: string): string;

export interface PostgresServerOptions {
  /** Beside the usual ones, as in `postgresql.conf`. */
  readonly settings?: readonly string[];
  readonly port?: number;
  /** Puts files into the data folder before the first start. */
  readonly furnish?: (data: string) => void;
}

/** Starts a server. */
export function startPostgres(options?: PostgresServerOptions): Promise<PostgresServer>;
