import { OrderedTrie, toHex } from "@stele/eth/node";
import { BrokerError } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import type { ProofPlace } from "../../../ports/chain-proof.ts";
import { type ContractLog, parseLog } from "../read/parse-log.ts";
import type { RpcBlock, RpcReceipt } from "./block-rpc.ts";
import { findReceiptBytes } from "./receipt-rlp.ts";

export interface FoundBatch {
  readonly transactionIndex: number;
  readonly logPlace: number;
  readonly publisher: Address;
  readonly events: Uint8Array;
}

export interface ProvenBlockOptions {
  readonly block: RpcBlock;
  readonly header: Uint8Array;
  readonly receipts: readonly RpcReceipt[];
  readonly registry: Address;
}

/** The data for proofs of one block's events. */
export class ProvenBlock {
  readonly hash: unknown;
  readonly header: Uint8Array;
  /** Approximate memory, in bytes. */
  readonly bytes: number;
  readonly #number: number;
  readonly #batches: ReadonlyMap<string, FoundBatch>;
  readonly #trie: OrderedTrie;

  /** @throws BrokerError 200206 if the receipts do not hash to the block's receiptsRoot. */
  constructor(number: number, { block, header, receipts, registry }: ProvenBlockOptions) {
    const encoded = receipts.flatMap((receipt) => findReceiptBytes(receipt) ?? []);
    const trie = new OrderedTrie(encoded);
    if (encoded.length !== receipts.length || toHex(trie.root) !== block["receiptsRoot"])
      throw unavailable(`the receipts of block ${number} do not hash to the block's receiptsRoot`);
    this.hash = block["hash"];
    this.header = header;
    this.#number = number;
    this.#batches = findBatches(receipts, registry);
    this.#trie = trie;
    // Twice, because the receipts and the trie both contain the events of each log.
    this.bytes = 2 * encoded.reduce((sum, { length }) => sum + length, header.length);
  }

  /** @throws BrokerError 200206 if the block does not contain the batch. */
  getBatch({ address, firstSequence }: ProofPlace): FoundBatch {
    const batch = this.#batches.get(keyOf(address, firstSequence));
    if (batch === undefined) throw unavailable(`block ${this.#number} of the chain does not hold the event`);
    return batch;
  }

  /** Nodes of the receipts trie from the root to a receipt. */
  prove(transactionIndex: number): readonly Uint8Array[] {
    return this.#trie.prove(transactionIndex);
  }
}

export function unavailable(details: string, cause?: unknown): BrokerError {
  return new BrokerError("proofUnavailable", { details, cause });
}

function findBatches(receipts: readonly RpcReceipt[], registry: Address): ReadonlyMap<string, FoundBatch> {
  const batches = new Map<string, FoundBatch>();
  for (const [transactionIndex, { logs }] of receipts.entries()) {
    for (const [logPlace, raw] of logs.entries()) {
      const log: ContractLog | undefined = parseLog(raw, registry);
      if (log?.kind !== "events-published") continue;
      const key = keyOf(log.address, log.firstSequence);
      if (!batches.has(key))
        batches.set(key, { transactionIndex, logPlace, publisher: log.sender, events: log.events });
    }
  }
  return batches;
}

function keyOf(address: string, firstSequence: number): string {
  return `${address} ${firstSequence}`;
}
