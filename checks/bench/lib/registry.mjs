import { everyone, topicRegistryAbi, topicRegistryBytecode } from "@stele/contracts";
import { concatHex, createWalletClient, http, keccak256, numberToHex, publicActions, toRlp } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { devKeys } from "./anvil.mjs";

const contentWords = 8;
const pollingInterval = 20;

/** The account that sends every transaction. */
export const sender = privateKeyToAccount(devKeys[0]);

/** A registry that is deployed only to measure the gas of its calls. */
export class Registry {
  #client;
  #address;

  constructor(client, address) {
    this.#client = client;
    this.#address = address;
  }

  /** @param {string} url of a node where {@link sender} has funds */
  static async deploy(url) {
    const client = createWalletClient({ account: sender, transport: http(url), pollingInterval }).extend(publicActions);
    const hash = await client.sendTransaction({ data: topicRegistryBytecode, chain: null });
    const { contractAddress } = await client.waitForTransactionReceipt({ hash, checkReplacement: false });
    return new Registry(client, contractAddress);
  }

  /** Opens topics in one transaction; returns the gas that it used. @param {readonly string[]} names */
  open(names) {
    return this.#call("open", [names, everyone]);
  }

  /** Publishes in one transaction; returns the gas that it used. @param {readonly string[]} names @param {number} events of each topic */
  async publish(names, events) {
    const topics = await Promise.all(names.map((name) => this.#topicOf(name)));
    return this.#call("publish", [topics.map((topic, index) => batchOf(topic, { events, first: index * events }))]);
  }

  #topicOf(name) {
    return this.#client.readContract({ ...this.#contract, functionName: "topicOf", args: [name] });
  }

  async #call(functionName, args) {
    const hash = await this.#client.writeContract({ ...this.#contract, functionName, args, chain: null });
    const { status, gasUsed, logs } = await this.#client.waitForTransactionReceipt({ hash, checkReplacement: false });
    if (status !== "success" || logs.length === 0)
      throw new Error(`${functionName} was ${status}, ${logs.length} logs`);
    return Number(gasUsed);
  }

  get #contract() {
    return { address: this.#address, abi: topicRegistryAbi };
  }
}

/** A batch as the broker encodes it, with different contents of 256 bytes. The root is arbitrary, because the contract does not check it. */
function batchOf(topic, { events: count, first }) {
  const contents = Array.from({ length: count }, (_, index) => contentOf(first + index));
  const events = toRlp(contents.map((content) => [content, []]));
  return { topic, count, events, eventsRoot: keccak256(events) };
}

function contentOf(index) {
  return concatHex(
    Array.from({ length: contentWords }, (_, word) => keccak256(numberToHex(index * contentWords + word))),
  );
}
