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
  const saved = ["--state", state, "--state-interval", "5", "--prune-history", "128"];
  const genesis = ["--timestamp", readGenesisTime(genesisTime)];
  return { command: anvilFile(), args: ["--host", host, "--port", String(port), ...free, ...saved, ...genesis] };
}

/** Sets anvil's clock to the current time. Needed after each start, because anvil's clock starts at the time of the first block. */
export async function setClock(url) {
  // Anvil stores how far its clock is ahead of the system clock, in whole seconds. If a new second begins during the call,
  // anvil's clock is a second behind: set it again.
  for (let seconds; seconds !== nowInSeconds(); ) {
    seconds = nowInSeconds();
    await setTime(url, seconds);
  }
}

async function setTime(url, seconds) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "evm_setTime", params: [seconds] });
  const response = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
  const { error } = await response.json();
  if (error !== undefined) throw new Error(`the chain's clock cannot be set: ${error.message}`);
}

/** Anvil creates a new first block at each start, and does not save the time of that block. A block with another time has another hash: the chain would be another one. */
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
