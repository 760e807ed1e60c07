import { Child } from "./child.mjs";
import { findProgram } from "./programs.mjs";
import { requestRpc } from "./rpc.mjs";

const funds = `0x${(10n ** 20n).toString(16)}`;
const receiptPollMs = 20;

/** The file of geth; undefined if it is not installed. */
export function findGeth() {
  return findProgram("geth", "BENCH_GETH");
}

/** geth with a chain of its own, which seals a block whenever a transaction waits. */
export class Geth {
  #child;

  constructor(child, url) {
    this.#child = child;
    this.url = url;
  }

  /** @param {{ readonly file: string, readonly dataDir: string }} options */
  static async start({ file, dataDir }) {
    const network = ["--port", "0", "--nodiscover", "--ipcdisable", "--authrpc.port", "0"];
    const http = ["--http", "--http.addr", "127.0.0.1", "--http.port", "0"];
    const child = new Child(["--dev", "--datadir", dataDir, ...network, ...http], { command: file });
    const [, address] = await child.waitFor(/HTTP server started\s+endpoint=(\S+:\d+)/);
    return new Geth(child, `http://${address}`);
  }

  /** Gives an account funds to pay gas with. @param {string} address */
  async fund(address) {
    const [rich] = await requestRpc(this.url, "eth_accounts");
    await requestRpc(this.url, "eth_sendTransaction", [{ from: rich, to: address, value: funds }]);
    while (BigInt(await requestRpc(this.url, "eth_getBalance", [address, "latest"])) === 0n)
      await new Promise((resolve) => setTimeout(resolve, receiptPollMs));
  }

  stop() {
    return this.#child.stop();
  }
}
