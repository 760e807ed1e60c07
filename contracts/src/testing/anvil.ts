import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { http } from "viem";
import type { TestChain } from "./test-chain.ts";

// High enough for batches of 1,000 events; private chains set such limits.
const blockGasLimit = 1_000_000_000;

/** Number of past states that anvil keeps; without a limit it writes them all to the home folder and leaves them there. */
const statesKept = 128;

/** Starts anvil on a free port with London rules. */
export async function startAnvil(extraOptions: readonly string[] = []): Promise<TestChain> {
  const rules = ["--hardfork", "london", "--base-fee", "0", "--gas-price", "0", "--gas-limit", String(blockGasLimit)];
  const options = ["--port", "0", "--prune-history", String(statesKept), ...rules, ...extraOptions];
  const child = spawn(anvilFile(), options, { stdio: ["ignore", "pipe", "inherit"] });
  const address = await readAddress(child);
  return { transport: http(`http://${address}`), stop: () => stop(child) };
}

// The binary itself, not the package's wrapper: killing the wrapper would leave its child running.
function anvilFile(): string {
  const { platform } = process;
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const wrapper = createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json");
  const manifest = createRequire(wrapper).resolve(`@foundry-rs/anvil-${platform}-${architecture}/package.json`);
  return join(dirname(manifest), "bin", platform === "win32" ? "anvil.exe" : "anvil");
}

async function readAddress(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("anvil was started without a pipe");
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) {
    const address = /^Listening on (\S+)$/.exec(line)?.[1];
    if (address !== undefined) {
      child.stdout.resume();
      return address;
    }
  }
  throw new Error("anvil exited before it listened");
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill();
  await exited;
}
