// The brokers of the cluster.
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { root } from "../prepare.mjs";
import { Part } from "./part.mjs";

const readyTimeoutMs = 60_000;
const readyPollMs = 200;

/** Starts all nodes at once. */
export function startNodes({ data, logs, ports, adopt, database, chain }) {
  const groups = JSON.stringify([{ id: "1", endpoints: [chain.url], fees: "zero" }]);
  return ports.map((port, index) => {
    const settings = {
      STELE_PORT: String(port),
      STELE_DATA_DIR: join(data, `node-${index + 1}`),
      STELE_DATABASE_URL: database.url,
      STELE_DATABASE_PASSWORD_FILE: database.passwordFile,
      STELE_GROUPS: groups,
    };
    const spawning = { env: { ...othersVariables(), ...settings } };
    const args = [join(root, "broker", "dist", "main.js")];
    const part = new Part(`node-${index + 1}`, { command: process.execPath, args, logs, adopt, spawning });
    return { part, url: `http://127.0.0.1:${port}` };
  });
}

/** Waits until each node can serve. Throws with what keeps one from it. */
export async function waitUntilReady(nodes) {
  await Promise.all(nodes.map(({ part }) => part.waitFor(/is ready\./)));
  await Promise.all(nodes.map(waitForHealth));
}

/** Settings of a broker that runs beside the cluster are none of the cluster's. */
function othersVariables() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("STELE_")));
}

async function waitForHealth({ part, url }) {
  const giveUpAt = Date.now() + readyTimeoutMs;
  let answer = "nothing";
  while (part.isRunning && Date.now() < giveUpAt) {
    const response = await fetch(`${url}/health/ready`).catch(() => undefined);
    answer = (await response?.text()) ?? answer;
    if (response?.status === 200) return;
    await pause(readyPollMs);
  }
  throw new Error(part.describe(part.isRunning ? `is not ready: ${answer}` : await part.exited));
}
