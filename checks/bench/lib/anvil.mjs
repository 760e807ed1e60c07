import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Child } from "./child.mjs";
import { readCpuSeconds } from "./proc.mjs";
import { requestRpc } from "./rpc.mjs";

/** Private keys of accounts that anvil funds; public knowledge. */
export const devKeys = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
];

/** States of past blocks; without a bound anvil writes gigabytes of them to the disk. */
const statesKept = "128";

/** A real EVM node, from the npm package. */
export class Anvil {
  #child;

  constructor(child, url) {
    this.#child = child;
    this.url = url;
  }

  /** @param {readonly string[]} flags */
  static async start(flags) {
    const common = ["--host", "127.0.0.1", "--port", "0", "--prune-history", statesKept];
    const child = new Child([...common, ...flags], { command: anvilFile() });
    const [, address] = await child.waitFor(/Listening on (\S+)/);
    return new Anvil(child, `http://${address}`);
  }

  get cpuSeconds() {
    return readCpuSeconds(this.#child.pid);
  }

  /** Asks the node. Throws with what it answered when that is an error. */
  request(method, params = []) {
    return requestRpc(this.url, method, params);
  }

  stop() {
    return this.#child.stop();
  }
}

// The binary itself and not the package's wrapper: a killed wrapper would leave its child behind.
function anvilFile() {
  const platform = `${process.platform}-${process.arch === "x64" ? "amd64" : process.arch}`;
  const wrapper = createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json");
  const manifest = createRequire(wrapper).resolve(`@foundry-rs/anvil-${platform}/package.json`);
  return join(dirname(manifest), "bin", process.platform === "win32" ? "anvil.exe" : "anvil");
}
