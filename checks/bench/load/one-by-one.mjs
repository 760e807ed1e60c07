// The baseline on a chain: sends one transaction per event, as fast as the node accepts them. Signs all of them natively, with one key and consecutive
// nonces, and sends them in JSON-RPC batches over many connections. Keeps more transactions outstanding than a block can hold.
//   node one-by-one.mjs '<Plan as JSON>'; prints its findings as JSON.
import { Agent, request } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { fromHex, Signer, signTransaction, toHex } from "@stele/eth/node";
import { contentOf } from "./request.mjs";

/**
 * @typedef {object} Plan
 * @property {string} url of the node
 * @property {string} privateKey
 * @property {string} contract address of a contract that emits its calldata as a log
 * @property {number} connections
 * @property {number} outstandingMax transactions sent and not yet seen in a block
 * @property {number} sendMs how long it sends
 */

const transactionsPerRequest = 50;
/** Gas limit of a transaction. It uses 21,000 gas, plus 40 for each byte of calldata (EIP-7623), or less on chains without that floor. */
const gasOfEvent = 32_000;
const fees = { kind: "eip1559", maxFeePerGas: 10n ** 12n, maxPriorityFeePerGas: 10n ** 9n };
const lookMs = 25;

class OneByOne {
  #plan;
  #agent;
  #signer;
  /** The fields that all transactions share. */
  #common;
  #nonce = 0;
  #included = 0;
  #isOver = false;

  /** @param {Plan} plan */
  constructor(plan) {
    this.#plan = plan;
    this.#agent = new Agent({ keepAlive: true, maxSockets: plan.connections + 1 });
  }

  async run() {
    const { privateKey, contract, connections, sendMs } = this.#plan;
    this.#common = { chainId: Number(await this.#ask("eth_chainId", [])), fees, gas: gasOfEvent, to: contract };
    this.#signer = new Signer(fromHex(privateKey));
    await this.#look();
    this.#nonce = this.#included;
    const first = this.#nonce;
    const cpuBefore = process.cpuUsage();
    const workers = Array.from({ length: connections }, (_, index) => this.#send(Buffer.from(contentOf(index))));
    const looking = this.#lookOften();
    await wait(sendMs);
    this.#isOver = true;
    await Promise.all([...workers, looking]);
    const { user, system } = process.cpuUsage(cpuBefore);
    while (this.#included < this.#nonce) {
      await wait(lookMs);
      await this.#look();
    }
    this.#agent.destroy();
    return { sent: this.#nonce - first, clientCpuShare: (user + system) / 1000 / sendMs };
  }

  /** Sends one batch after another. Waits while more than `outstandingMax` transactions are outstanding. */
  async #send(content) {
    while (!this.#isOver) {
      if (this.#nonce - this.#included > this.#plan.outstandingMax) await wait(lookMs);
      else await this.#sendBatch(content);
    }
  }

  async #sendBatch(content) {
    const calls = [];
    for (let index = 0; index < transactionsPerRequest; index += 1) {
      const { raw } = signTransaction({ ...this.#common, nonce: this.#nonce, data: content }, this.#signer);
      calls.push(`{"jsonrpc":"2.0","id":${index},"method":"eth_sendRawTransaction","params":["${toHex(raw)}"]}`);
      this.#nonce += 1;
    }
    const answer = await this.#post(`[${calls.join(",")}]`);
    if (answer.includes('"error"')) throw new Error(`The node refused a transaction: ${answer.slice(0, 1000)}`);
  }

  async #lookOften() {
    while (!this.#isOver) {
      await wait(lookMs);
      await this.#look();
    }
  }

  async #look() {
    this.#included = Number(await this.#ask("eth_getTransactionCount", [this.#signer.address, "latest"]));
  }

  async #ask(method, params) {
    const { error, result } = JSON.parse(await this.#post(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })));
    if (error !== undefined) throw new Error(`${method} failed: ${JSON.stringify(error)}`);
    return result;
  }

  #post(body) {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const sent = request(this.#plan.url, { method: "POST", agent: this.#agent, headers }, (response) => {
        const chunks = [];
        response.on("data", (chunk) => chunks.push(chunk));
        response.on("end", () => resolve(Buffer.concat(chunks).toString()));
        response.on("error", reject);
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }
}

process.stdout.write(JSON.stringify(await new OneByOne(JSON.parse(process.argv[2])).run()));
