import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import path from "node:path";
import { createInterface } from "node:readline";
import type { EvmProvider } from "../endpoint/rpc.ts";

/** A running anvil, which seals a block for each transaction. */
export interface Anvil {
  readonly provider: EvmProvider;
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts anvil on the loopback interface, on a free port unless one is given. */
export async function startAnvil(options: readonly string[] = []): Promise<Anvil> {
  const port = options.includes("--port") ? [] : ["--port", "0"];
  // Unless told otherwise, anvil keeps the state after every block in the home folder, which has filled a disk.
  const kept = ["--max-persisted-states", "1"];
  const args = ["--host", "127.0.0.1", ...port, "--gas-limit", "1000000000", ...kept, ...options];
  const child = spawn(anvilFile(), args, { stdio: ["ignore", "pipe", "inherit"] });
  const url = await listeningUrl(child);
  return {
    url,
    provider: createHttpProvider(url),
    stop: async () => {
      const exit = once(child, "exit");
      child.kill();
      await exit;
    },
  };
}

/** The smallest EIP-1193 provider: one POST a request, no notifications. */
export function createHttpProvider(url: string): EvmProvider {
  return {
    request: async ({ method, params = [] }) => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const response = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
      const answer = (await response.json()) as { result?: unknown; error?: { code: number; message: string } }; // JSON-RPC 2.0.
      if (answer.error === undefined) return answer.result;
      throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
    },
  };
}

// The binary itself and not the package's wrapper: a killed wrapper would leave its child behind.
function anvilFile(): string {
  const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  const wrapper = createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json");
  const manifest = createRequire(wrapper).resolve(`@foundry-rs/anvil-${platform}/package.json`);
  return path.join(path.dirname(manifest), "bin", process.platform === "win32" ? "anvil.exe" : "anvil");
}

async function listeningUrl(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("anvil's output is not read");
  for await (const line of createInterface(child.stdout)) {
    const [, address] = /Listening on (\S+)/.exec(line) ?? [];
    if (address === undefined) continue;
    child.stdout.resume();
    return `http://${address}`;
  }
  throw new Error("anvil did not start");
}
