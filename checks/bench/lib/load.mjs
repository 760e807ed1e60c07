import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { topic } from "./servers.mjs";

const run = promisify(execFile);
const fileOf = (program) => fileURLToPath(new URL(`../load/${program}.mjs`, import.meta.url));

/**
 * Publishes to a server from a separate process. Throws if a publish fails.
 * @param {import("./servers.mjs").Server} server
 * @param {Omit<import("../load/publish-load.mjs").Plan, "port" | "topic">} plan
 */
export async function publishLoad(server, plan) {
  const findings = await load("publish-load", server, { topic, ...plan });
  if (findings.failures > 0) throw new Error(`${findings.failures} publishes failed`);
  return findings;
}

/**
 * Publishes on one connection and receives on many, from a separate process. Ends when every connection has every event; throws if a connection ends.
 * @param {import("./servers.mjs").Server} server
 * @param {Omit<import("../load/stomp-fan-out.mjs").Plan, "port">} plan
 */
export function fanOutLoad(server, plan) {
  return load("stomp-fan-out", server, plan);
}

/**
 * Runs a separate process that sends wrong credentials. Its connections come from the address `from` in the plan.
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
  return { ...findings, serverCpuUsPerEvent: serverCpuUs / findings.eventsTotal };
}
