import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Child } from "./child.mjs";
import { readCpuSeconds, readMemory } from "./proc.mjs";
import { callRest } from "./rest.mjs";

export const topic = "bench/load";

const run = promisify(execFile);

/** A server under load: the broker, a baseline or another product. */
export class Server {
  #child;

  /** @param {Child} child @param {number} port */
  constructor(child, port) {
    this.#child = child;
    this.port = port;
  }

  get pid() {
    return this.#child.pid;
  }

  get memory() {
    return readMemory(this.#child.pid);
  }

  get cpuSeconds() {
    return readCpuSeconds(this.#child.pid);
  }

  stop() {
    return this.#child.stop();
  }

  kill() {
    return this.#child.kill();
  }
}

/** Makes an empty data folder below `resultsDir`, because the system's folder for temporary files may be in memory. */
export function createDataFolder(resultsDir) {
  return mkdtempSync(join(resultsDir, "data-"));
}

export function removeDataFolder(folder) {
  rmSync(folder, { recursive: true, force: true });
}

/**
 * Starts the broker on a data folder, and waits until it serves and {@link topic} is open.
 * @param {{ readonly main: string, readonly dataDir: string, readonly settings?: Record<string, string>, readonly nodeFlags?: readonly string[] }} options
 */
export async function startBroker(options) {
  const child = startChild(options);
  const [, port] = await child.waitFor(/REST\s+http:\/\/127\.0\.0\.1:(\d+)/);
  await callRest(Number(port), "open", { topic });
  return new Server(child, Number(port));
}

function startChild({ main, dataDir, settings = {}, nodeFlags = [] }) {
  const env = {
    STELE_PORT: "0",
    STELE_MQTT_PORT: "off",
    STELE_STOMP_PORT: "off",
    STELE_DATA_DIR: dataDir,
    STELE_LOG_LEVEL: "warn",
    ...settings,
  };
  return new Child([...nodeFlags, main], { env });
}

/**
 * Starts a broker with access turned on. In the result, `key` runs `stele key` with the given arguments. `create` runs `stele key create` with the given flags,
 * and returns the key. `findPort` returns the port of another protocol that the settings turn on.
 */
export async function startGuardedBroker({ main, dataDir, access, settings: more = {} }) {
  const settings = { STELE_ACCESS: JSON.stringify(access), STELE_ADMIN_PORT: "0", ...more };
  const env = { ...process.env, ...settings, STELE_DATA_DIR: dataDir };
  const key = async (...words) => (await run(process.execPath, [main, "key", ...words], { env })).stdout.trim();
  const create = (...flags) => key("create", ...flags);
  const child = startChild({ main, dataDir, settings });
  const [, port] = await child.waitFor(/REST\s+http:\/\/127\.0\.0\.1:(\d+)/);
  const findPort = async (protocol) => {
    const [, found] = await child.waitFor(new RegExp(`${protocol}\\s+\\S*127\\.0\\.0\\.1:(\\d+)`));
    return Number(found);
  };
  return { server: new Server(child, Number(port)), key, create, findPort };
}

/** Starts the broker. The result has its STOMP port in `port`. Opens no topic. */
export async function startStompBroker(options) {
  const settings = { ...options.settings, STELE_STOMP_PORT: "0" };
  const child = startChild({ ...options, settings });
  const [, port] = await child.waitFor(/STOMP\s+\S*127\.0\.0\.1:(\d+)/);
  return new Server(child, Number(port));
}

/** Starts the baseline. */
export function startBareFastify() {
  return startBare("bare-fastify");
}

/** Starts the server that refuses every connection. */
export function startBareRefuser() {
  return startBare("bare-refuser");
}

async function startBare(program) {
  const child = new Child([fileURLToPath(new URL(`../${program}.mjs`, import.meta.url))]);
  const [, port] = await child.waitFor(/listening on (\d+)/);
  return new Server(child, Number(port));
}
