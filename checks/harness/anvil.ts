import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { type Hex, toHex } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { type ChainState, readState } from "./anvil-state.ts";

export interface AnvilOptions {
  /** Seconds between blocks. Without it, anvil makes a block for each transaction at once. */
  readonly blockTimeS?: number;
  /** The file that anvil reads its state from at start and writes it to at stop. */
  readonly state?: AnvilState;
  /** The port to listen on; without it, a free one. */
  readonly port?: number;
  readonly args?: readonly string[];
}

/** What makes a chain the same after a restart. */
export interface AnvilState {
  readonly file: string;
  /** Time of the first block, in seconds. The file does not contain it, and another time would make another chain. */
  readonly genesisTimeS: number;
}

/** A running anvil: a real EVM node, from the npm package. */
export interface Anvil extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Sends a request to the node. @throws Error with the node's error. */
  request(method: string, params?: readonly unknown[]): Promise<unknown>;
  /** Writes the current state to the file. Other nodes write their blocks by themselves; anvil does so only at a clean stop. */
  save(): Promise<void>;
  /** Stops it cleanly: it writes its state, and loses its pool, as any node does. */
  stop(): Promise<void>;
  /** kill -9: it loses its pool and all blocks since the last `save`. */
  kill(): Promise<void>;
}

const stopTimeoutMs = 20_000;
/** Number of past states that anvil keeps, as many as other nodes do. Without a bound it writes all to the disk and leaves them there. */
const statesKept = 128;
const mnemonic = "test test test test test test test test test test test junk";
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** The private key of one of the accounts that anvil funds; public knowledge, for tests only. */
export function devKey(index: number): Hex {
  const { privateKey } = mnemonicToAccount(mnemonic, { addressIndex: index }).getHdKey();
  if (privateKey === null) throw new Error("an account of a mnemonic has a private key");
  return toHex(privateKey);
}

export async function startAnvil({ blockTimeS, state, port = 0, args = [] }: AnvilOptions = {}): Promise<Anvil> {
  const flags = ["--host", "127.0.0.1", "--port", String(port), "--prune-history", String(statesKept), ...args];
  if (blockTimeS !== undefined) flags.push("--block-time", String(blockTimeS));
  if (state !== undefined) flags.push("--state", state.file, "--timestamp", String(state.genesisTimeS));
  const child = spawn(anvilFile(), flags, { stdio: ["ignore", "pipe", "inherit"] });
  running.add(child);
  const exited = once(child, "exit").finally(() => running.delete(child));
  const url = await readUrl(child);
  const stop = async (): Promise<void> => {
    const isRunning = child.exitCode === null && child.signalCode === null;
    // Anvil makes blocks while it writes its state. After a start, a block that brokers have seen would be missing.
    if (state !== undefined && isRunning) await standStill(url);
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs);
    await exited;
    clearTimeout(timer);
  };
  const kill = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  const save = async (): Promise<void> => {
    if (state === undefined) throw new Error("a chain without a file is not saved");
    let taken = await takeState(url);
    while (!taken.isOfOneMoment) taken = await takeState(url);
    writeFileSync(`${state.file}.new`, taken.text);
    renameSync(`${state.file}.new`, state.file);
  };
  return {
    url,
    port: Number(new URL(url).port),
    request: (method, params = []) => askNode(url, { method, params }),
    save,
    stop,
    kill,
    [Symbol.asyncDispose]: stop,
  };
}

/** Resolves once anvil makes no further block. */
async function standStill(url: string): Promise<void> {
  await askNode(url, { method: "evm_setIntervalMining", params: [0] });
  for (;;) {
    const { height, isOfOneMoment } = await takeState(url);
    const now = Number(await askNode(url, { method: "eth_blockNumber", params: [] }));
    if (isOfOneMoment && now === height) return;
  }
}

async function takeState(url: string): Promise<ChainState> {
  return readState(String(await askNode(url, { method: "anvil_dumpState", params: [] })));
}

async function askNode(
  url: string,
  { method, params }: { readonly method: string; readonly params: readonly unknown[] },
): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
  const answer = (await response.json()) as { result?: unknown; error?: unknown }; // JSON-RPC 2.0.
  if (answer.error !== undefined) throw new Error(`${method}: ${JSON.stringify(answer.error)}`);
  return answer.result;
}

// Start the binary, not the package's wrapper: a killed wrapper would leave its child behind.
function anvilFile(): string {
  const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  const wrapper = createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json");
  const manifest = createRequire(wrapper).resolve(`@foundry-rs/anvil-${platform}/package.json`);
  return join(dirname(manifest), "bin", process.platform === "win32" ? "anvil.exe" : "anvil");
}

async function readUrl(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("anvil's output is not read");
  for await (const line of createInterface(child.stdout)) {
    const [, address] = /Listening on (\S+)/.exec(line) ?? [];
    if (address === undefined) continue;
    child.stdout.resume();
    return `http://${address}`;
  }
  throw new Error("anvil ended before it listened");
}
