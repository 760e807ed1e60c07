import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { topic } from "./servers.mjs";

const run = promisify(execFile);
const fileOf = (program) => fileURLToPath(new URL(`../load/${program}.mjs`, import.meta.url));

/**
 * Publishes at a server from a process of its own. Throws when one publish fails.
 * @param {import("./servers.mjs").Server} server
 * @param {Omit<import("../load/publish-load.mjs").Plan, "port" | "topic">} plan
 */
export async function publishLoad(server, plan) {
  const findings = await load("publish-load", server, { topic, ...plan });
  if (findings.failures > 0) throw new Error(`${findings.failures} publishes failed`);
  return findings;
}

/**
 * Publishes on one connection and receives on many, from a process of its own. Throws unless every connection receives every event.
 * @param {import("./servers.mjs").Server} server
 * @param {Omit<import("../load/stomp-fan-out.mjs").Plan, "port">} plan
 */
export function fanOutLoad(server, plan) {
  return load("stomp-fan-out", server, plan);
}

/**
 * Gives wrong credentials, from a process and an address of its own.
 * @param {import("./servers.mjs").Server} server
 * @param {Omit<import("../load/wrong-log-ins.mjs").Plan, "port">} plan
 */
export function wrongLogIns(server, plan) {
  return load("wrong-log-ins", server, plan);
}

async function load(program, server, plan) {
  const cpuBefore = server.cpuSeconds;
  const { stdout } = await run(process.execPath, [fileOf(program), JSON.stringify({ ...plan, port: server.port })]);
  const findings = JSON.parse(stdout);
  const serverCpuUs = (server.cpuSeconds - cpuBefore) * 1e6;
  return { ...findings, serverCpuUsPerEvent: serverCpuUs / findings.eventsInAll };
}
