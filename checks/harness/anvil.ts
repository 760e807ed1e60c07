import { renameSync, writeFileSync } from "node:fs";
import { type Hex, toHex } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import * as launcher from "../../tools/anvil.mjs";
import { type ChainState, readState } from "./anvil-state.ts";

export interface AnvilOptions {
  /** Seconds between blocks. Without it, anvil makes a block for each transaction at once. */
  readonly blockTimeS?: number;
  /** Where anvil reads its state when it starts, and writes it when it stops. */
  readonly state?: AnvilState;
  /** The port to listen on; without it, a free one. */
  readonly port?: number;
  readonly args?: readonly string[];
}

/** Lets anvil continue the same chain after a restart. */
export interface AnvilState {
  readonly file: string;
  /** Unix time of the first block, in seconds. The file does not contain it, and a different time gives a different chain. */
  readonly genesisTimeS: number;
}

/** A running anvil: a real EVM node, from the npm package. */
export interface Anvil extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Sends a request to the node. @throws Error with the node's error. */
  request(method: string, params?: readonly unknown[]): Promise<unknown>;
  /** Writes the current state to the file. Other chain nodes write every block; anvil writes only at a clean stop. */
  save(): Promise<void>;
  /** Stops anvil cleanly: it writes its state and loses its transaction pool. */
  stop(): Promise<void>;
  /** kill -9: anvil loses its transaction pool and all blocks since the last `save`. */
  kill(): Promise<void>;
}

const mnemonic = "test test test test test test test test test test test junk";
const devKeys = new Map<number, Hex>();

/** The private key of the account with this index, from 0, among those that anvil funds. These keys are public: use them in tests only. */
export function devKey(index: number): Hex {
  const key = devKeys.get(index) ?? deriveKey(index);
  devKeys.set(index, key);
  return key;
}

/** Takes about 20 ms of processor time. */
function deriveKey(index: number): Hex {
  const { privateKey } = mnemonicToAccount(mnemonic, { addressIndex: index }).getHdKey();
  if (privateKey === null) throw new Error("the account of the mnemonic has no private key");
  return toHex(privateKey);
}

export async function startAnvil({ blockTimeS, state, port = 0, args = [] }: AnvilOptions = {}): Promise<Anvil> {
  const flags = ["--port", String(port), ...args];
  if (blockTimeS !== undefined) flags.push("--block-time", String(blockTimeS));
  if (state !== undefined) flags.push("--state", state.file, "--timestamp", String(state.genesisTimeS));
  const anvil = await launcher.startAnvil(flags);
  const { url } = anvil;
  const stop = async (): Promise<void> => {
    // Anvil may make a block while it writes its state. After the restart, that block would be missing, although brokers have seen it.
    if (state !== undefined && anvil.isRunning()) await stopMining(url);
    await anvil.stop();
  };
  const save = async (): Promise<void> => {
    if (state === undefined) throw new Error("save() needs the option `state`");
    let dump = await dumpState(url);
    while (!dump.isConsistent) dump = await dumpState(url);
    writeFileSync(`${state.file}.new`, dump.text);
    renameSync(`${state.file}.new`, state.file);
  };
  return {
    url,
    port: Number(new URL(url).port),
    request: (method, params = []) => askNode(url, { method, params }),
    save,
    stop,
    kill: anvil.kill,
    [Symbol.asyncDispose]: stop,
  };
}

/** Turns interval mining off. Resolves once anvil has finished the block that it may be making. */
async function stopMining(url: string): Promise<void> {
  await askNode(url, { method: "evm_setIntervalMining", params: [0] });
  for (;;) {
    const { height, isConsistent } = await dumpState(url);
    const now = Number(await askNode(url, { method: "eth_blockNumber", params: [] }));
    if (isConsistent && now === height) return;
  }
}

async function dumpState(url: string): Promise<ChainState> {
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
