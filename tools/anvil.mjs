// Starts anvil, a real EVM node from the npm package, for tests, benchmarks and local clusters.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

const stopTimeoutMs = 20_000;
/**
 * Number of past states that anvil keeps: other chain nodes keep as many. Without a limit, anvil writes all states to the home folder and leaves them there.
 */
const statesKept = "128";

const running = new Set();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** The binary itself, not the package's wrapper: a killed wrapper would leave its child behind. */
export function anvilFile() {
  const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  const wrapper = createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json");
  const manifest = createRequire(wrapper).resolve(`@foundry-rs/anvil-${platform}/package.json`);
  return join(dirname(manifest), "bin", process.platform === "win32" ? "anvil.exe" : "anvil");
}

/** @param {readonly string[]} args flags of anvil; without `--port` it listens on a free one */
export async function startAnvil(args = []) {
  const port = args.includes("--port") ? [] : ["--port", "0"];
  const flags = ["--host", "127.0.0.1", ...port, "--prune-history", statesKept, ...args];
  const child = spawn(anvilFile(), flags, { stdio: ["ignore", "pipe", "inherit"] });
  running.add(child);
  const exited = once(child, "exit").finally(() => running.delete(child));
  const url = await readUrl(child);
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs);
    await exited;
    clearTimeout(timer);
  };
  const kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  const isRunning = () => running.has(child);
  return { url, pid: child.pid, isRunning, stop, kill, [Symbol.asyncDispose]: stop };
}

async function readUrl(child) {
  for await (const line of createInterface({ input: child.stdout })) {
    const [, address] = /^Listening on (\S+)/.exec(line) ?? [];
    if (address === undefined) continue;
    child.stdout.resume();
    return `http://${address}`;
  }
  throw new Error("anvil ended before it listened");
}
