import { execFile } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Child } from "./child.mjs";

const run = promisify(execFile);
const loadScript = fileURLToPath(new URL("../load/mqtt-load.mjs", import.meta.url));
const idleScript = fileURLToPath(new URL("../load/mqtt-idle.mjs", import.meta.url));
/** V8 collects the garbage of a start, and that of connecting, within about 40 s of idleness. */
const settleMs = 50_000;
const kibibytesPerMebibyte = 1024;

/**
 * Loads an MQTT server from a separate process. Throws if the server closes a connection.
 * @param {import("./servers.mjs").Server} server
 * @param {Omit<import("../load/mqtt-load.mjs").Plan, "port">} plan
 */
export async function mqttLoad(server, plan) {
  const cpuBefore = server.cpuSeconds;
  const { stdout } = await run(process.execPath, [loadScript, JSON.stringify({ ...plan, port: server.port })]);
  const findings = JSON.parse(stdout);
  const serverCpuUs = (server.cpuSeconds - cpuBefore) * 1e6;
  return { ...findings, serverCpuUsPerEvent: serverCpuUs / findings.eventsTotal };
}

/** KiB of resident memory that one of `count` idle connections takes. @param {import("./servers.mjs").Server} server @param {number} count */
export async function measureIdle(server, count) {
  await wait(settleMs);
  const before = server.memory.residentMb;
  const child = new Child([idleScript, String(server.port), String(count)]);
  try {
    await child.waitFor(/connections are open/);
    await wait(settleMs);
    return ((server.memory.residentMb - before) * kibibytesPerMebibyte) / count;
  } finally {
    await child.stop();
  }
}
