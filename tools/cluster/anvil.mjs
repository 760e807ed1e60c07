// How anvil, of the npm package, is run as a chain that stays the same from one start to the next.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const millisecondsPerSecond = 1000;

/** The names of the files that it keeps in its folder. */
export const chainFiles = ["chain.json", "chain-genesis-time"];

/** The program with its arguments: free gas, so that each node can sign with a key of its own that nobody has to fund, and state that is kept. */
export function anvilCommand({ folder, host, port }) {
  const [state, genesisTime] = chainFiles.map((name) => join(folder, name));
  const free = ["--block-base-fee-per-gas", "0", "--gas-price", "0", "--disable-min-priority-fee"];
  const kept = ["--state", state, "--state-interval", "5", "--prune-history", "128"];
  const first = ["--timestamp", readGenesisTime(genesisTime)];
  return { command: anvilFile(), args: ["--host", host, "--port", String(port), ...free, ...kept, ...first] };
}

/** To be called after each start: its clock begins at the time of the first block. */
export async function setClock(url) {
  // Anvil keeps the whole seconds between what it is told and its own time: told of a second that is over, it stays behind.
  for (let told; told !== nowInSeconds(); ) {
    told = nowInSeconds();
    await tellTime(url, told);
  }
}

async function tellTime(url, seconds) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "evm_setTime", params: [seconds] });
  const response = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
  const { error } = await response.json();
  if (error !== undefined) throw new Error(`the chain's clock cannot be set: ${error.message}`);
}

/** Anvil makes its first block anew at each start, and forgets the time that it had: another time would make another chain. */
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

// The binary itself and not the package's wrapper: a killed wrapper would leave its child behind.
function anvilFile() {
  const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  const wrapper = createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json");
  const manifest = createRequire(wrapper).resolve(`@foundry-rs/anvil-${platform}/package.json`);
  return join(dirname(manifest), "bin", process.platform === "win32" ? "anvil.exe" : "anvil");
}
