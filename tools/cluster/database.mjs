// PostgreSQL of the cluster: a server of its own, which keeps its data across restarts.
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { findBinaries, findOwner, missingPostgres } from "../postgres-programs.mjs";
import { Part } from "./part.mjs";

const user = "stele";
const database = "stele";
const connectionsMax = 200;

/** Starts the server. Creates its data folder and the database if they do not exist yet. Returns its URL without the password, and the file with the password. */
export async function startDatabase({ data, logs, port, register }) {
  const binaries = findBinaries();
  if (binaries === undefined) throw new Error(missingPostgres);
  const passwordFile = join(data, "postgres.password");
  const owner = findOwner();
  const folder = databaseFolder(data, owner);
  const spawnOptions = { ...owner, cwd: folder, env: { ...process.env, LC_ALL: "C" } };
  if (!existsSync(join(folder, "PG_VERSION"))) initialise({ binaries, folder, passwordFile, spawnOptions });
  const settings = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    `max_connections=${connectionsMax}`,
  ];
  const args = ["-D", folder, ...settings.flatMap((setting) => ["-c", setting])];
  const part = new Part("database", { command: join(binaries, "postgres"), args, logs, register, spawnOptions });
  await part.waitFor(/ready to accept connections/);
  await createDatabase(port, readFileSync(passwordFile, "utf8"));
  return { part, folder, url: `postgres://${user}@127.0.0.1:${port}/${database}`, passwordFile };
}

/** Deletes the server's files. */
export function deleteDatabase(data) {
  for (const folder of [besideData(data), elsewhere(data)]) rmSync(folder, { recursive: true, force: true });
  rmSync(join(data, "postgres.password"), { force: true });
}

/** Creates the server's folder. PostgreSQL refuses to run as root, and the user that runs it instead may not be able to enter a folder of root. */
function databaseFolder(data, owner) {
  const folder = besideData(data);
  if (owner === undefined) return makeFolder(folder);
  const isReached = spawnSync("ls", [data], { ...owner, cwd: "/", stdio: "ignore" }).status === 0;
  const own = makeFolder(isReached ? folder : elsewhere(data));
  chownSync(own, owner.uid, owner.gid);
  return own;
}

function besideData(data) {
  return join(data, "postgres");
}

function elsewhere(data) {
  return `/var/tmp/stele-cluster-${createHash("sha256").update(data).digest("hex").slice(0, 16)}`;
}

function makeFolder(folder) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

function initialise({ binaries, folder, passwordFile, spawnOptions }) {
  const password = randomBytes(24).toString("hex");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  const draft = `${folder}.draft`; // The user that runs initdb reads this copy. The user that runs the nodes reads `passwordFile`.
  writeFileSync(draft, password, { mode: 0o600 });
  if (spawnOptions.uid !== undefined) chownSync(draft, spawnOptions.uid, spawnOptions.gid);
  const args = ["--encoding=UTF8", "--locale=C", `--username=${user}`, "--auth=scram-sha-256", `--pwfile=${draft}`];
  const made = spawnSync(join(binaries, "initdb"), [...args, "-D", folder], { ...spawnOptions, encoding: "utf8" });
  rmSync(draft);
  const { status, stderr, error } = made;
  if (status !== 0) throw new Error(`PostgreSQL's initdb failed in ${folder}: ${error?.message ?? stderr}`);
}

async function createDatabase(port, password) {
  const client = new pg.Client({ host: "127.0.0.1", port, user, password, database: "postgres" });
  await client.connect();
  try {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [database]);
    if (rowCount === 0) await client.query(`create database ${database}`);
  } finally {
    await client.end();
  }
}
