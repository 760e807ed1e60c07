import { startAnvil } from "../../../tools/anvil.mjs";
import { readCpuSeconds } from "./proc.mjs";
import { requestRpc } from "./rpc.mjs";

/** Private keys of accounts that anvil funds; public knowledge. */
export const devKeys = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
];

/** A real EVM node, from the npm package. */
export class Anvil {
  #process;

  constructor(process) {
    this.#process = process;
    this.url = process.url;
  }

  /** @param {readonly string[]} flags */
  static async start(flags) {
    return new Anvil(await startAnvil(flags));
  }

  get cpuSeconds() {
    return readCpuSeconds(this.#process.pid);
  }

  /** Sends a request to the node. Throws with the node's error. */
  request(method, params = []) {
    return requestRpc(this.url, method, params);
  }

  stop() {
    return this.#process.stop();
  }
}
