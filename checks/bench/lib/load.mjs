import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { topic } from "./servers.mjs";

const run = promisify(execFile);
const script = fileURLToPath(new URL("../load/publish-load.mjs", import.meta.url));

/**
 * Publishes at a server from a process of its own. Throws when one publish fails.
 * @param {import("./servers.mjs").Server} server
 * @param {Omit<import("../load/publish-load.mjs").Plan, "port" | "topic">} plan
 */
export async function publishLoad(server, plan) {
  const cpuBefore = server.cpuSeconds;
  const { stdout } = await run(process.execPath, [script, JSON.stringify({ ...plan, port: server.port, topic })]);
  const findings = JSON.parse(stdout);
  if (findings.failures > 0) throw new Error(`${findings.failures} publishes failed`);
  const serverCpuUs = (server.cpuSeconds - cpuBefore) * 1e6;
  return { ...findings, serverCpuUsPerEvent: serverCpuUs / findings.eventsInAll };
}
