import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "pg";

const portDefault = 5432; // Of the socket's name alone: the server does not listen on the network unless it is asked to.
const user = "stele";

/** A PostgreSQL server of a test's own, in a folder that goes with it. It does not sync, so that it is fast. */
export interface PostgresServer {
  /** The folder of its socket and its configuration. */
  readonly folder: string;
  /** The address of a database; of the one that is there from the start when none is named. */
  url(database?: string): string;
  /** The address of an empty database. */
  createDatabase(): Promise<string>;
  /** The address of an empty schema, which takes a tenth of the time of a database. */
  createSchema(): Promise<string>;
  /** What a query answers, on a connection of its own. */
  query(sql: string, parameters?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>;
  /** Ends it: every session is told (`fast`), or none is (`kill`). */
  halt(way: "fast" | "kill"): Promise<void>;
  /** Starts it again after `halt`. */
  resume(): Promise<void>;
  /** Halts it and deletes its folder. */
  remove(): Promise<void>;
}

const binaries = findBinaries();
const isRequired = process.env["CHECKS_POSTGRES"] === "required";

/** Whether tests with PostgreSQL run here. Where they must (CHECKS_POSTGRES=required), they fail without it. */
export const hasPostgres = binaries !== undefined || isRequired;

/** The title of tests that need PostgreSQL; it says so where they are left out. */
export function titleOf(title: string): string {
  return hasPostgres ? title : `${title} (left out: PostgreSQL is not installed)`;
}

export interface PostgresServerOptions {
  /** Beside the usual ones, as in `postgresql.conf`. */
  readonly settings?: readonly string[];
  readonly port?: number;
  /** Puts files into the data folder before the first start. */
  readonly furnish?: (data: string) => void;
}

/** Starts a server. */
export async function startPostgres(options: PostgresServerOptions = {}): Promise<PostgresServer> {
  const { settings = [], port = portDefault, furnish = () => {} } = options;
  if (binaries === undefined) throw new Error("PostgreSQL is not installed: neither initdb nor postgres was found");
  const folder = mkdtempSync(join(tmpdir(), "stele-postgres-"));
  const owner = findOwner();
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  const spawning = { ...owner, cwd: folder, env: { ...process.env, LC_ALL: "C" } };
  const data = join(folder, "data");
  const args = ["--no-sync", "--encoding=UTF8", "--locale=C", `--username=${user}`, "--auth=trust", "-D", data];
  const made = spawnSync(join(binaries, "initdb"), args, { ...spawning, encoding: "utf8" });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  furnish(data);
  const start = async () =>
    startProcess(join(binaries, "postgres"), { args: [`port=${port}`, ...settings], folder, spawning });
  const server = new Server({ folder, port, start });
  await server.resume();
  return server;
}

interface ServerParts {
  readonly folder: string;
  readonly port: number;
  readonly start: () => Promise<ChildProcess | undefined>;
}

class Server implements PostgresServer {
  readonly folder: string;
  readonly #port: number;
  readonly #start: () => Promise<ChildProcess | undefined>;
  #child: ChildProcess | undefined;
  #made = 0;

  constructor({ folder, port, start }: ServerParts) {
    this.folder = folder;
    this.#port = port;
    this.#start = start;
  }

  url(database = "postgres"): string {
    return `postgres://${user}@${encodeURIComponent(this.folder)}:${this.#port}/${database}`;
  }

  async createDatabase(): Promise<string> {
    const name = `made_${(this.#made += 1)}`;
    await this.query(`create database ${name}`);
    return this.url(name);
  }

  async createSchema(): Promise<string> {
    const name = `made_${(this.#made += 1)}`;
    await this.query(`create schema ${name}`);
    return `${this.url()}?options=${encodeURIComponent(`-c search_path=${name}`)}`;
  }

  async query(sql: string, parameters: readonly unknown[] = []): Promise<readonly Record<string, unknown>[]> {
    const client = new Client({ connectionString: this.url() });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql, [...parameters])).rows;
    } finally {
      await client.end();
    }
  }

  async halt(way: "fast" | "kill"): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const exited = once(child, "exit");
    child.kill(way === "fast" ? "SIGINT" : "SIGKILL");
    await exited;
  }

  async resume(): Promise<void> {
    while (this.#child === undefined) this.#child = await this.#start();
  }

  async remove(): Promise<void> {
    await this.halt("fast");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

interface StartOptions {
  readonly args: readonly string[];
  readonly folder: string;
  readonly spawning: { readonly cwd: string; readonly uid?: number; readonly gid?: number };
}

/** Undefined while processes of a killed server are still there; they end as soon as they see that it is gone. */
async function startProcess(file: string, { args, folder, spawning }: StartOptions): Promise<ChildProcess | undefined> {
  const own = ["fsync=off", "full_page_writes=off", "listen_addresses=", `unix_socket_directories=${folder}`];
  const settings = [...own, ...args].flatMap((setting) => ["-c", setting]);
  const child = spawn(file, ["-D", join(folder, "data"), ...settings], {
    ...spawning,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line);
    if (!line.includes("ready to accept connections")) continue;
    child.stderr.resume();
    return child;
  }
  if (lines.some((line) => line.includes("is still in use"))) return undefined;
  throw new Error(`PostgreSQL did not start: ${lines.join("\n")}`);
}

/** The folder of `initdb` and `postgres`: on the path, or where Debian puts the newest of them. */
function findBinaries(): string | undefined {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian)
    ? readdirSync(debian).toSorted((left, right) => Number(right) - Number(left))
    : [];
  const folders = [
    ...versions.map((version) => join(debian, version, "bin")),
    ...(process.env["PATH"] ?? "").split(delimiter),
  ];
  return folders.find(
    (folder) => folder !== "" && ["initdb", "postgres"].every((name) => existsSync(join(folder, name))),
  );
}

/** PostgreSQL refuses to run as root. */
function findOwner(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const [found] = ["postgres", "nobody"].flatMap((name) => users.filter(([own]) => own === name));
  if (found === undefined)
    throw new Error("PostgreSQL cannot run as root, and there is neither a user postgres nor nobody");
  return { uid: Number(found[2]), gid: Number(found[3]) };
}
