import { topicRegistryAbi } from "@stele/contracts";
import { encodeEvents, merkleRoot, topicAddress } from "@stele/wire";
import {
  createWalletClient,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  http,
  publicActions,
  toBytes,
  toHex,
} from "viem";
import { privateKeyToAccount, privateKeyToAddress } from "viem/accounts";
import { anvil as anvilChain } from "viem/chains";
import { expect } from "vitest";
import { devKey } from "../../harness/anvil.ts";
import type { Client } from "../../harness/client.ts";

/** Address of the registry that a broker deploys with anvil's first account. */
export const registry = getContractAddress({ from: privateKeyToAddress(devKey(0)), nonce: 0n });

/** A batch with the fields that the contract's `publish` takes. */
export interface RawBatch {
  readonly topic: Hex;
  readonly count: number;
  readonly eventsRoot: Hex;
  readonly events: Hex;
}

/** An event. A string is the content of an event that has no extensions. */
export type RawEvent = string | { readonly content: Uint8Array; readonly extensions: readonly [string, string][] };

/** An account outside the broker, which writes to the registry with its own key and without the broker's checks. */
export class Stranger {
  readonly #wallet;

  constructor(url: string) {
    const transport = http(url, { retryCount: 0 });
    this.#wallet = createWalletClient({
      account: privateKeyToAccount(devKey(5)),
      chain: anvilChain,
      transport,
      pollingInterval: 50,
    }).extend(publicActions);
  }

  async open(name: string): Promise<void> {
    await this.untilMined(await this.sendOpen(name));
  }

  /** Publishes all batches in one transaction, and waits for its block. Returns the hash of the transaction. */
  async publish(...batches: readonly RawBatch[]): Promise<Hex> {
    const hash = await this.sendPublish(batches);
    await this.untilMined(hash);
    return hash;
  }

  /** Sends a transaction that opens a topic, and does not wait for its block. */
  sendOpen(name: string, gas?: bigint): Promise<Hex> {
    const data = encodeFunctionData({ abi: topicRegistryAbi, functionName: "open", args: [[name], 0] });
    return this.send({ to: registry, data, gas });
  }

  /** Sends a transaction that publishes the batches, and does not wait for its block. */
  sendPublish(batches: readonly RawBatch[], gas?: bigint): Promise<Hex> {
    const data = encodeFunctionData({ abi: topicRegistryAbi, functionName: "publish", args: [batches] });
    return this.send({ to: registry, data, gas });
  }

  /** Sends a transaction, and does not wait for its block. Without `to`, the data is the creation code of a contract. */
  send({ to, data, gas }: { readonly to?: Hex; readonly data: Hex; readonly gas?: bigint | undefined }): Promise<Hex> {
    return this.#wallet.sendTransaction({ to: to ?? null, data, ...(gas === undefined ? {} : { gas }) });
  }

  /** Waits for the block of a transaction, checks that the transaction succeeded, and returns the block's number. */
  async untilMined(hash: Hex): Promise<number> {
    const { status, blockNumber } = await this.#wallet.waitForTransactionReceipt({ hash, checkReplacement: false });
    expect(status).toBe("success");
    return Number(blockNumber);
  }
}

export function addressOf(name: string): Hex {
  return toHex(topicAddress({ registry: toBytes(registry), name }));
}

/** A valid batch of the topic, with some fields replaced. */
export function batchOf(topic: string, events: readonly RawEvent[], forged: Partial<RawBatch> = {}): RawBatch {
  const encoded = encodeEvents(
    events.map((event) => (typeof event === "string" ? { content: Buffer.from(event), extensions: [] } : event)),
  );
  return {
    topic: addressOf(topic),
    count: events.length,
    eventsRoot: toHex(merkleRoot(encoded)),
    events: toHex(encoded),
    ...forged,
  };
}

/** An entry of `/admin/skippedEntries`. */
export interface Skipped {
  readonly reason: string;
  readonly transactionHash: string;
  readonly blockNumber: number;
  readonly topicAddress: string;
}

/** The skipped entries of the group, newest first. */
export async function listSkipped(client: Client): Promise<readonly Skipped[]> {
  const answer = await client.http.send({ method: "GET", path: "/admin/skippedEntries?groupId=1&limit=1000" });
  return (answer.json() as { entries: readonly Skipped[] }).entries; // Another test checks its shape.
}
