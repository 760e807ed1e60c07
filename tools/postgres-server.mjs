// A PostgreSQL server for tests and measurements, from the programs that this machine has. Types and contract: postgres-server.d.mts.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import pg from "pg";
import { findBinaries, findOwner } from "./postgres-programs.mjs";

const portDefault = 5432; // Only for the socket's name: by default, the server does not listen on the network.
const user = "stele";

const binaries = findBinaries();
const isRequired = process.env.CHECKS_POSTGRES === "required";
const running = new Map();
/** The data folder of a server that never ran, as tar writes it. */
let archive;
// An interrupted run must leave no server behind.
process.on("exit", () => {
  for (const [child, folder] of running) {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});

export const hasPostgres = binaries !== undefined || isRequired;

export function titleOf(title) {
  return hasPostgres ? title : `${title} (left out: PostgreSQL is not installed)`;
}

export async function startPostgres({ settings = [], port = portDefault, prepareData = () => {} } = {}) {
  if (binaries === undefined) throw new Error("PostgreSQL is not installed: neither initdb nor postgres was found");
  const owner = findOwner();
  const folder = mkdtempSync(join(tmpdir(), "stele-postgres-"));
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  const spawnOptions = { ...owner, cwd: folder, env: { ...process.env, LC_ALL: "C" } };
  const data = join(folder, "data");
  makeData(data, spawnOptions);
  prepareData(data);
  const start = async () =>
    startProcess(join(binaries, "postgres"), { args: [`port=${port}`, ...settings], folder, spawnOptions });
  const server = new Server({ folder, port, start });
  await server.resume();
  return server;
}

/**
 * `initdb` takes most of the processor time of a start, so it runs once for all servers of this process. The result is kept in memory: test runners and Ctrl-C
 * end a process by a signal, and then nothing would remove a folder.
 */
function makeData(data, spawnOptions) {
  if (archive !== undefined) {
    run("tar", ["-xpf", "-"], { ...spawnOptions, input: archive });
    return;
  }
  const args = ["--no-sync", "--encoding=UTF8", "--locale=C", `--username=${user}`, "--auth=trust"];
  run(join(binaries, "initdb"), [...args, "-D", data], spawnOptions);
  archive = run("tar", ["-cf", "-", basename(data)], spawnOptions);
}

function run(program, args, options) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    ...options,
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  if (status !== 0) throw new Error(`${program} failed: ${stderr}`, { cause: error });
  return stdout;
}

class Server {
  folder;
  #port;
  #start;
  #child;
  #made = 0;

  constructor({ folder, port, start }) {
    this.folder = folder;
    this.#port = port;
    this.#start = start;
  }

  get pid() {
    return this.#child?.pid;
  }

  url(database = "postgres") {
    return `postgres://${user}@${encodeURIComponent(this.folder)}:${this.#port}/${database}`;
  }

  async createDatabase() {
    const name = `made_${(this.#made += 1)}`;
    await this.query(`create database ${name}`);
    return this.url(name);
  }

  async createSchema() {
    const name = `made_${(this.#made += 1)}`;
    await this.query(`create schema ${name}`);
    return `${this.url()}?options=${encodeURIComponent(`-c search_path=${name}`)}`;
  }

  async query(sql, parameters = [], url = this.url()) {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(sql, [...parameters])).rows;
    } finally {
      await client.end();
    }
  }

  async halt(way) {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    const exited = once(child, "exit");
    child.kill(way === "fast" ? "SIGINT" : "SIGKILL");
    await exited;
  }

  async resume() {
    while (this.#child === undefined) this.#child = await this.#start();
  }

  async remove() {
    await this.halt("fast");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Starts the main process. Returns undefined while processes of a killed server still run: they end when they notice that the main process is gone. */
async function startProcess(file, { args, folder, spawnOptions }) {
  const own = ["fsync=off", "full_page_writes=off", "listen_addresses=", `unix_socket_directories=${folder}`];
  const settings = [...own, ...args].flatMap((setting) => ["-c", setting]);
  const child = spawn(file, ["-D", join(folder, "data"), ...settings], {
    ...spawnOptions,
    stdio: ["ignore", "ignore", "pipe"],
  });
  running.set(child, folder);
  child.once("exit", () => running.delete(child));
  const lines = [];
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line);
    if (!line.includes("ready to accept connections")) continue;
    child.stderr.resume();
    return child;
  }
  if (lines.some((line) => line.includes("is still in use"))) return undefined;
  throw new Error(`PostgreSQL did not start: ${lines.join("\n")}`);
}
