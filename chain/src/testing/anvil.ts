import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", arm64: "arm64" };

/** States of past blocks; without a bound anvil writes them all to the home folder and leaves them there. */
const STATES_KEPT = "128";

export interface Anvil extends AsyncDisposable {
  readonly url: string;
}

/** Starts anvil on a port of its own choice. */
export async function startAnvil(args: readonly string[]): Promise<Anvil> {
  const process = spawn(findAnvil(), ["--port", "0", "--prune-history", STATES_KEPT, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await readUrl(process);
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      process.kill();
      if (process.exitCode === null && process.signalCode === null) await once(process, "exit");
    },
  };
}

function findAnvil(): string {
  const platform = `${process.platform}-${ARCHITECTURES[process.arch] ?? process.arch}`;
  const program = process.platform === "win32" ? "anvil.exe" : "anvil";
  const require = createRequire(import.meta.url);
  const anvil = require.resolve("@foundry-rs/anvil/package.json");
  return createRequire(anvil).resolve(`@foundry-rs/anvil-${platform}/bin/${program}`);
}

async function readUrl(process: ChildProcess): Promise<string> {
  if (process.stdout === null) throw new Error("anvil has no output to read its address from");
  for await (const line of createInterface({ input: process.stdout })) {
    const address = /^Listening on (\S+)$/.exec(line)?.[1];
    if (address !== undefined) return `http://${address}`;
  }
  throw new Error("anvil ended before it listened");
}
