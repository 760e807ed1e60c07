// Runs anvil from the npm package as a chain that keeps its state across restarts.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { anvilFile } from "../anvil.mjs";

const millisecondsPerSecond = 1000;

/** Files in the chain's folder. */
export const chainFiles = ["chain.json", "chain-genesis-time"];

/** Command line of anvil. Gas is free, so each node can sign with its own key, which has no funds. Anvil saves its state. */
export function anvilCommand({ folder, host, port }) {
  const [state, genesisTime] = chainFiles.map((name) => join(folder, name));
  const free = ["--block-base-fee-per-gas", "0", "--gas-price", "0", "--disable-min-priority-fee"];
  const kept = ["--state", state, "--state-interval", "5", "--prune-history", "128"];
  const first = ["--timestamp", readGenesisTime(genesisTime)];
  return { command: anvilFile(), args: ["--host", host, "--port", String(port), ...free, ...kept, ...first] };
}

/** Call it after each start: anvil's clock starts at the time of the first block. */
export async function setClock(url) {
  // Anvil stores the offset to its own clock in whole seconds. If the second ends during the call, anvil's clock is a second behind: set it again.
  for (let set; set !== nowInSeconds(); ) {
    set = nowInSeconds();
    await setTime(url, set);
  }
}

async function setTime(url, seconds) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "evm_setTime", params: [seconds] });
  const response = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
  const { error } = await response.json();
  if (error !== undefined) throw new Error(`the chain's clock cannot be set: ${error.message}`);
}

/** Anvil creates a new first block at each start, and does not save the time of that block. With another time, it would be another chain. */
function readGenesisTime(file) {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${nowInSeconds()}\n`);
  }
  return readFileSync(file, "utf8").trim();
}

function nowInSeconds() {
  return Math.floor(Date.now() / millisecondsPerSecond);
}
