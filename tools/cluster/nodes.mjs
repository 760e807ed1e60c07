// The brokers of the cluster.
import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { root } from "../prepare.mjs";
import { Part } from "./part.mjs";

const readyTimeoutMs = 60_000;
const readyPollMs = 200;
const main = join(root, "broker", "dist", "bundle", "main.js");
const scriptMode = 0o755;
const secretMode = 0o600;
/** File of the key that encrypts the secrets of subscriptions. All nodes share it. */
export const secretKeyName = "secrets.key";

/** Starts all nodes at once. */
export function startNodes({ data, logs, ports, register, database, chain }) {
  const groups = JSON.stringify([{ id: "1", endpoints: [chain.url], fees: "zero" }]);
  const secretKeyFile = makeSecretKey(data);
  return ports.map((port, index) => {
    const name = `node-${index + 1}`;
    const settings = {
      STELE_PORT: String(port),
      STELE_DATA_DIR: join(data, name),
      STELE_DATABASE_URL: database.url,
      STELE_DATABASE_PASSWORD_FILE: database.passwordFile,
      STELE_SECRET_KEY_FILE: secretKeyFile,
      STELE_GROUPS: groups,
      // The nodes run on one machine and cannot share the default ports, so each takes a free port. WebSocket clients use the HTTP port.
      STELE_MQTT_PORT: "0",
      STELE_STOMP_PORT: "0",
    };
    const restartCommand = writeScript(join(data, `${name}.sh`), settings);
    const spawnOptions = { env: { ...environmentWithoutSettings(), ...settings } };
    const part = new Part(name, {
      command: process.execPath,
      args: [main],
      logs,
      register,
      spawnOptions,
      restartCommand,
    });
    return { part, url: `http://127.0.0.1:${port}` };
  });
}

/** Waits until each node is ready. If one does not become ready, throws with the reason. */
export async function waitUntilReady(nodes) {
  await Promise.all(nodes.map(({ part }) => part.waitFor(/^Stele \S+ (is ready|has started)/m)));
  await Promise.all(nodes.map(waitForHealth));
}

function makeSecretKey(data) {
  const file = join(data, secretKeyName);
  if (!existsSync(file)) writeFileSync(file, `${randomBytes(32).toString("hex")}\n`, { mode: secretMode });
  return file;
}

/** The user's environment without settings of Stele: they may belong to another broker. */
function environmentWithoutSettings() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("STELE_")));
}

/** Writes a script with which the user restarts the node. It contains no secret. Returns the command that runs it. */
function writeScript(file, settings) {
  const lines = [
    "#!/bin/sh",
    "# Restarts this node. The cluster's database and chain must be running. Each `npm run cluster` overwrites this file.",
    "unset $(env | sed -n 's/^\\(STELE_[A-Za-z0-9_]*\\)=.*/\\1/p')",
    ...Object.entries(settings).map(([name, value]) => `export ${name}=${quote(value)}`),
    `exec ${quote(process.execPath)} ${quote(main)}`,
  ];
  writeFileSync(file, `${lines.join("\n")}\n`, { mode: scriptMode });
  return /^[\w./-]+$/.test(file) ? `sh ${file}` : `sh ${quote(file)}`;
}

function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

async function waitForHealth({ part, url }) {
  const giveUpAt = Date.now() + readyTimeoutMs;
  let answer = "/health/ready does not answer";
  while (part.isRunning && Date.now() < giveUpAt) {
    const response = await fetch(`${url}/health/ready`).catch(() => undefined);
    answer = (await response?.text()) ?? answer;
    if (response?.status === 200) return;
    await pause(readyPollMs);
  }
  throw new Error(part.describe(part.isRunning ? `is not ready: ${answer}` : await part.exited));
}
