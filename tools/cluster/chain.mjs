// The chain of the cluster: anvil, of the npm package, whose state is kept from one start to the next.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Part } from "./part.mjs";

/** Starts a chain with free gas, so that each node can sign with a key of its own that nobody has to fund. */
export async function startChain({ data, logs, port, adopt }) {
  const free = ["--block-base-fee-per-gas", "0", "--gas-price", "0", "--disable-min-priority-fee"];
  const kept = ["--state", join(data, "chain.json"), "--state-interval", "5", "--prune-history", "128"];
  const args = ["--host", "127.0.0.1", "--port", String(port), ...free, ...kept];
  const part = new Part("chain", { command: anvilFile(), args, logs, adopt });
  await part.waitFor(/Listening on/);
  return { part, url: `ws://127.0.0.1:${port}` };
}

// The binary itself and not the package's wrapper: a killed wrapper would leave its child behind.
function anvilFile() {
  const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  const wrapper = createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json");
  const manifest = createRequire(wrapper).resolve(`@foundry-rs/anvil-${platform}/package.json`);
  return join(dirname(manifest), "bin", process.platform === "win32" ? "anvil.exe" : "anvil");
}
