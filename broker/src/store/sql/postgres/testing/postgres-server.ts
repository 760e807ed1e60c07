import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "pg";

const port = 5432; // Of the socket's name alone: the server does not listen on the network unless it is asked to.
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
const isRequired = process.env["STELE_TEST_POSTGRES"] === "required";

/** Whether tests with PostgreSQL run here. Where they must (STELE_TEST_POSTGRES=required), they fail without it. */
export const hasPostgres = binaries !== undefined || isRequired;

/** The title of tests that need PostgreSQL; it says so where they are left out. */
export function titleOf(title: string): string {
  return hasPostgres ? title : `${title} (left out: PostgreSQL is not installed)`;
}

/** Starts a server with these settings beside the usual ones. */
export async function startPostgres(settings: readonly string[] = []): Promise<PostgresServer> {
  if (binaries === undefined) throw new Error("PostgreSQL is not installed: neither initdb nor postgres was found");
  const folder = mkdtempSync(join(tmpdir(), "stele-postgres-"));
  const owner = findOwner();
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  const options = { ...owner, cwd: folder, env: { ...process.env, LC_ALL: "C" } };
  const data = join(folder, "data");
  const args = ["--no-sync", "--encoding=UTF8", "--locale=C", `--username=${user}`, "--auth=trust", "-D", data];
  const made = spawnSync(join(binaries, "initdb"), args, { ...options, encoding: "utf8" });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  const start = async () => startProcess(join(binaries, "postgres"), { args: settings, folder, spawn: options });
  const server = new Server(folder, start);
  await server.resume();
  return server;
}

class Server implements PostgresServer {
  readonly folder: string;
  readonly #start: () => Promise<ChildProcess>;
  #child: ChildProcess | undefined;
  #made = 0;

  constructor(folder: string, start: () => Promise<ChildProcess>) {
    this.folder = folder;
    this.#start = start;
  }

  url(database = "postgres"): string {
    return `postgres://${user}@${encodeURIComponent(this.folder)}/${database}`;
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
    this.#child = await this.#start();
  }

  async remove(): Promise<void> {
    await this.halt("fast");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

interface StartOptions {
  readonly args: readonly string[];
  readonly folder: string;
  readonly spawn: { readonly cwd: string; readonly uid?: number; readonly gid?: number };
}

async function startProcess(file: string, { args, folder, spawn: options }: StartOptions): Promise<ChildProcess> {
  const own = [
    "fsync=off",
    "full_page_writes=off",
    `port=${port}`,
    "listen_addresses=",
    `unix_socket_directories=${folder}`,
  ];
  const settings = [...own, ...args].flatMap((setting) => ["-c", setting]);
  const child = spawn(file, ["-D", join(folder, "data"), ...settings], {
    ...options,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line);
    if (!line.includes("ready to accept connections")) continue;
    child.stderr.resume();
    return child;
  }
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
