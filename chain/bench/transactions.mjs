// Sends transactions one after another. Measures the time from `request` to `newHeads` in this thread, with the disk sync, and the bytes on disk for each
// event:
//   node chain/bench/transactions.mjs [rounds]
// With `node --cpu-prof --cpu-prof-dir <folder>` the worker writes a profile too.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedChain } from "@stele/chain";
import { privateKeyToAccount } from "viem/accounts";

const EVENT_BYTES = 256;
const EVENT_COUNTS = [1, 64, 256, 1_000];
const WARM_UP = 200;
const rounds = Number(process.argv[2] ?? 300);

// Emits its calldata as one log with one topic: CALLDATACOPY, LOG1, STOP.
const DEPLOYMENT = "0x600d600c600039600d6000f33660006000376001366000a100";
const account = privateKeyToAccount(`0x${"11".repeat(32)}`);
const fees = { type: "eip1559", chainId: 1337, gas: 100_000_000n, maxFeePerGas: 7n, maxPriorityFeePerGas: 0n };

class Sender {
  #nonce = 0;
  #waiting = [];

  constructor(chain) {
    this.chain = chain;
    chain.on("message", ({ data }) => this.#waiting.shift()?.(data.result));
  }

  sign(to, data) {
    return account.signTransaction({ ...fees, nonce: this.#nonce++, to, data });
  }

  async send(raw) {
    const head = new Promise((resolve) => this.#waiting.push(resolve));
    const [hash] = await Promise.all([this.chain.request({ method: "eth_sendRawTransaction", params: [raw] }), head]);
    return hash;
  }
}

async function deploy(sender) {
  await sender.chain.request({ method: "eth_subscribe", params: ["newHeads"] });
  const hash = await sender.send(await sender.sign(undefined, DEPLOYMENT));
  const receipt = await sender.chain.request({ method: "eth_getTransactionReceipt", params: [hash] });
  return receipt.contractAddress;
}

async function time(sender, to, events) {
  const raws = [];
  for (let index = 0; index < rounds + WARM_UP; index += 1) {
    raws.push(await sender.sign(to, `0x${Buffer.alloc(events * EVENT_BYTES, `event ${index}, `).toString("hex")}`));
  }
  const times = [];
  for (const raw of raws) {
    const start = performance.now();
    await sender.send(raw);
    times.push(performance.now() - start);
  }
  return times.slice(WARM_UP).toSorted((left, right) => left - right);
}

async function measure(events, folder) {
  const file = join(folder, `${events}.db`);
  const chain = await startEmbeddedChain({ file, chainId: 1337, genesisAccounts: [account.address] });
  const sender = new Sender(chain);
  const times = await time(sender, await deploy(sender), events);
  await chain.stop();
  const bytesOfTransaction = statSync(file).size / (rounds + WARM_UP);
  return [
    events,
    times[Math.floor(rounds / 2)].toFixed(2),
    times[Math.floor(rounds * 0.99)].toFixed(2),
    Math.round(bytesOfTransaction / events),
  ];
}

const folder = mkdtempSync(join(tmpdir(), "stele-chain-"));
try {
  process.stdout.write(`events (${EVENT_BYTES} B) in a transaction\tmedian ms\tp99 ms\tdisk bytes per event\n`);
  for (const events of EVENT_COUNTS) process.stdout.write(`${(await measure(events, folder)).join("\t\t")}\n`);
} finally {
  rmSync(folder, { recursive: true });
}
