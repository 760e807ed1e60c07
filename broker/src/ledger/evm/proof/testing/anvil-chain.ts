import { topicRegistryBytecode } from "@stele/contracts";
import { type Hex, toHex } from "@stele/eth/node";
import { encodeEvents, merkleRoot } from "@stele/wire";
import type { EventPayload } from "../../../../domain/event.ts";
import type { Address } from "../../../../domain/topic.ts";
import type { EvmProvider } from "../../endpoint/rpc.ts";
import { openCalldata } from "../../registry/registry.ts";
import { type Anvil, startAnvil } from "../../testing/anvil.ts";
import { encodePublish } from "../../write/publish-calldata.ts";
import { addressOf, type Published } from "./prove.ts";

/** An account for which anvil signs. */
export const account: Address = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const publishGas: Hex = "0x3b9aca0";
const gasPrice: Hex = "0x4a817c800";

/** Fields of an `eth_sendTransaction` call. */
export type Fields = Readonly<Record<string, string | readonly string[]>>;

export interface RawBatch {
  readonly count: number;
  readonly events: Uint8Array;
  readonly eventsRoot?: Uint8Array;
}

/** An anvil node with a registry. A test can put several transactions into one block. */
export class AnvilChain {
  readonly provider: EvmProvider;
  readonly registry: Address;
  readonly url: string;
  readonly #anvil: Anvil;
  readonly #sequences = new Map<string, number>();
  #isInOneBlock = false;

  private constructor(anvil: Anvil, registry: Address) {
    this.#anvil = anvil;
    this.provider = anvil.provider;
    this.url = anvil.url;
    this.registry = registry;
  }

  static async start(options: readonly string[] = []): Promise<AnvilChain> {
    const anvil = await startAnvil(options);
    const deploy = { from: account, data: topicRegistryBytecode, gas: publishGas, gasPrice };
    try {
      const hash = await anvil.provider.request({ method: "eth_sendTransaction", params: [deploy] });
      const { contractAddress } = await receiptOf(anvil.provider, hash);
      return new AnvilChain(anvil, contractAddress);
    } catch (error) {
      await anvil.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.#anvil.stop();
  }

  async ask<Answer>(method: string, ...params: readonly unknown[]): Promise<Answer> {
    return (await this.provider.request({ method, params })) as Answer; // The caller names the type that the method's specification gives.
  }

  async open(topic: string): Promise<void> {
    await this.send({ to: this.registry, data: toHex(openCalldata([topic])), gas: publishGas });
  }

  /** Resolves once the transaction is included; within {@link inOneBlock}, once it is sent. */
  async send(fields: Fields): Promise<void> {
    const fees = "maxFeePerGas" in fields ? {} : { gasPrice };
    const hash = await this.ask<Hex>("eth_sendTransaction", { from: account, ...fees, ...fields });
    if (!this.#isInOneBlock) await receiptOf(this.provider, hash);
  }

  /** Sends one transaction with these batches of a topic, whose counts and roots are right. */
  async sendBatches(topic: string, batches: readonly (readonly EventPayload[])[], fields: Fields = {}): Promise<void> {
    const raw = batches.map((events) => ({ count: events.length, events: encodeEvents(events) }));
    await this.sendRawBatches(topic, raw, fields);
  }

  /** Sends batches whose count and root may be wrong. If a batch has no `eventsRoot`, it gets the root of its events, or zeros if they do not decode. */
  async sendRawBatches(topic: string, batches: readonly RawBatch[], fields: Fields = {}): Promise<void> {
    const address = addressOf(this.registry, topic);
    const encoded = batches.map((batch) => ({ address, eventsRoot: rootOf(batch.events), ...batch }));
    await this.send({ to: this.registry, data: toHex(encodePublish(encoded)), gas: publishGas, ...fields });
  }

  async head(): Promise<number> {
    return Number(await this.ask<Hex>("eth_blockNumber"));
  }

  /** Numbers a topic's batches in the newest block, and returns them with that block. Call it once for each block. */
  async recordPublished(topic: string, batches: readonly (readonly EventPayload[])[]): Promise<Published[]> {
    const blockNumber = await this.head();
    return batches.map((events) => {
      const firstSequence = (this.#sequences.get(topic) ?? 0) + 1;
      this.#sequences.set(topic, firstSequence + events.length - 1);
      return { topic, firstSequence, blockNumber, events };
    });
  }

  /** Publishes the batches in one transaction, and returns where they are on the chain. */
  async publish(
    topic: string,
    batches: readonly (readonly EventPayload[])[],
    fields: Fields = {},
  ): Promise<Published[]> {
    await this.sendBatches(topic, batches, fields);
    return this.recordPublished(topic, batches);
  }

  /** Puts all transactions that `work` sends into one block. */
  async inOneBlock(work: () => Promise<void>): Promise<void> {
    this.#isInOneBlock = true;
    await this.ask("evm_setAutomine", false);
    await work();
    await this.ask("evm_mine");
    await this.ask("evm_setAutomine", true);
    this.#isInOneBlock = false;
  }
}

function rootOf(events: Uint8Array): Uint8Array {
  try {
    return merkleRoot(events);
  } catch {
    return new Uint8Array(32);
  }
}

/** Waits for the receipt of a transaction. */
async function receiptOf(provider: EvmProvider, hash: unknown): Promise<{ readonly contractAddress: Address }> {
  for (;;) {
    const receipt = await provider.request({ method: "eth_getTransactionReceipt", params: [hash] });
    if (receipt !== null) return receipt as { contractAddress: Address }; // Only the deployment's caller reads contractAddress.
  }
}

/** Distinct events, every second one with extensions. */
export function someEvents(count: number, mark = "event"): EventPayload[] {
  return Array.from({ length: count }, (_, index) => ({
    content: Buffer.from(`${mark} ${index}`),
    extensions: index % 2 === 0 ? [] : [["svc-n", String(index)] as const],
  }));
}
