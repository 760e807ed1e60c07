import { type Hex, type Signer, signTransaction } from "@stele/eth/node";
import { merkleRoot } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import type { RawBatch } from "../../../ports/ledger.contract.ts";
import { type EvmProvider, Rpc } from "../endpoint/rpc.ts";
import { createdAddress } from "../registry/find-registry.ts";
import { openCalldata } from "../registry/registry.ts";
import { encodePublish } from "../write/publish-calldata.ts";

const gas = 5_000_000;
const fees = { kind: "eip1559", maxFeePerGas: 10_000_000_000n, maxPriorityFeePerGas: 0n } as const;

/** A batch whose root may be wrong on purpose. */
export interface ForgedBatch extends RawBatch {
  readonly eventsRoot?: Uint8Array;
}

/** An account outside the broker, which writes to the contracts with its own key and without the broker's checks. */
export class Stranger {
  readonly #rpc: Rpc;
  readonly #signer: Signer;
  readonly #registry: () => Promise<Address>;

  constructor(provider: EvmProvider, options: { readonly signer: Signer; readonly registry: () => Promise<Address> }) {
    this.#rpc = new Rpc(provider);
    this.#signer = options.signer;
    this.#registry = options.registry;
  }

  async open(name: string): Promise<void> {
    await this.send(openCalldata([name]), await this.#registry());
  }

  async publish(batches: readonly ForgedBatch[]): Promise<void> {
    const encoded = batches.map((batch) => ({ ...batch, eventsRoot: batch.eventsRoot ?? rootOf(batch.events) }));
    await this.send(encodePublish(encoded), await this.#registry());
  }

  /** Sends one transaction and waits until it is included; returns the address of the contract that it created. */
  async send(data: Uint8Array, to?: Hex): Promise<Address | undefined> {
    const chainId = await this.#rpc.chainId();
    const nonce = await this.#rpc.transactionCount(this.#signer.address, "pending");
    const { raw, hash } = signTransaction({ chainId, nonce, fees, gas, to, data }, this.#signer);
    await this.#rpc.sendRaw(raw);
    for (;;) {
      const receipt = await this.#rpc.receipt(hash);
      if (receipt === undefined) continue;
      if (!receipt.succeeded) throw new Error("the stranger's transaction was reverted");
      return to === undefined ? createdAddress(this.#signer.address, nonce) : undefined;
    }
  }
}

function rootOf(events: Uint8Array): Uint8Array {
  try {
    return merkleRoot(events);
  } catch {
    return new Uint8Array(32);
  }
}
