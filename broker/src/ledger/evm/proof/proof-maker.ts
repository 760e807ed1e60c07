import { BrokerError, merklePath } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import { BoundedMap } from "../../../lib/bounded-map.ts";
import { Semaphore } from "../../../lib/semaphore.ts";
import { untilAborted } from "../../../lib/until-aborted.ts";
import { type ChainProof, type ProofPlace, ReceiptsTooLong } from "../../../ports/chain-proof.ts";
import { type EvmProvider, isEmbedded } from "../endpoint/rpc.ts";
import { isUnanswered, RpcFailure } from "../endpoint/rpc-failure.ts";
import { BlockRpc, receiptsBytesMax, type RpcBlock, type RpcReceipt } from "./block-rpc.ts";
import { findHeader } from "./header-rlp.ts";
import { ProvenBlock, unavailable } from "./proven-block.ts";
import { ProvenBlocks } from "./proven-blocks.ts";

/** Upper bound on the blocks that are read concurrently; each may take several times the bytes of its receipts in memory. */
const blocksAtOnce = 2;
/** Upper bound on the remembered blocks with too long receipts, so that nobody can make the broker read these receipts again and again. */
const tooLongMax = 1024;
/** Timeout for reading a block for proofs, in milliseconds, however long the callers wait. */
const blockTimeoutMs = 30_000;

/** Makes proofs of events from an endpoint's answers about a block. It returns only data that matches the block's hash. */
export class ProofMaker {
  readonly #provider: EvmProvider;
  readonly #registry: Address;
  readonly #turns = new Semaphore(blocksAtOnce);
  /** Blocks by hash. On the embedded chain by number: it has no reorgs, and reading a block just for its hash would delay new blocks. */
  readonly #tooLong = new BoundedMap<unknown, true>(tooLongMax);
  readonly #blocks = new ProvenBlocks((number) => this.#read(number));

  constructor(options: { readonly provider: EvmProvider; readonly registry: Address }) {
    this.#provider = options.provider;
    this.#registry = options.registry;
  }

  /**
   * @throws BrokerError 200205 if the endpoint is unreachable, `signal` aborts, or a reorg replaces the block; 200206 if the endpoint's answers do not
   * prove the event; 200300 if other proofs leave no turn to read the block.
   */
  async make(place: ProofPlace, signal: AbortSignal): Promise<ChainProof> {
    const { blockNumber, blockHash } = place;
    if (this.#tooLong.has(blockNumber)) throw beyondProof(blockNumber, new ReceiptsTooLong(receiptsBytesMax));
    const block = await untilAborted(this.#blocks.get(blockNumber, blockHash), signal);
    if (block === undefined) throw new BrokerError("chainUnreachable", { details: "no answer in time" });
    if (blockHash !== undefined && block.hash !== blockHash) {
      const details = `a reorg replaced block ${blockNumber} during the call: try again`;
      throw new BrokerError("chainUnreachable", { details });
    }
    const { transactionIndex, logPlace, publisher, events } = block.getBatch(place);
    const nodes = block.prove(transactionIndex);
    const path = merklePath(events, place.index);
    return { registry: this.#registry, publisher, path, transactionIndex, logPlace, nodes, header: block.header };
  }

  async #read(blockNumber: number): Promise<ProvenBlock> {
    try {
      const signal = AbortSignal.timeout(blockTimeoutMs);
      const rpc = new BlockRpc(this.#provider, signal);
      const block = await this.#turns.run(async () => this.#ask(blockNumber, rpc), signal);
      if (block === undefined) throw new BrokerError("busy", { details: "other proofs are being made" });
      return block;
    } catch (error) {
      if (error instanceof ReceiptsTooLong) throw beyondProof(blockNumber, error);
      if (!(error instanceof RpcFailure)) throw error;
      if (isUnanswered(error)) throw new BrokerError("chainUnreachable", { cause: error });
      throw unavailable(`the chain's endpoint refused block ${blockNumber}`, error);
    }
  }

  async #ask(blockNumber: number, rpc: BlockRpc): Promise<ProvenBlock> {
    const block = await rpc.findBlock(blockNumber);
    if (block === undefined) throw unavailable(`the chain's endpoint does not have block ${blockNumber}`);
    const header = findHeader(block);
    if (header === undefined) throw unavailable(`the header of block ${blockNumber} does not hash to the block's hash`);
    const receipts = await this.#findReceipts(blockNumber, block, rpc);
    if (receipts === undefined)
      throw unavailable(`the chain's endpoint no longer has the receipts of block ${blockNumber}`);
    return new ProvenBlock(blockNumber, { block, header, receipts, registry: this.#registry });
  }

  async #findReceipts(blockNumber: number, block: RpcBlock, rpc: BlockRpc): Promise<readonly RpcReceipt[] | undefined> {
    const key = isEmbedded(this.#provider) ? blockNumber : block["hash"];
    if (this.#tooLong.has(key)) throw new ReceiptsTooLong(receiptsBytesMax);
    try {
      return await rpc.findReceipts(block);
    } catch (error) {
      if (error instanceof ReceiptsTooLong) this.#tooLong.set(key, true);
      throw error;
    }
  }
}

function beyondProof(blockNumber: number, error: ReceiptsTooLong): BrokerError {
  return unavailable(`block ${blockNumber}: ${error.message}`, error);
}
