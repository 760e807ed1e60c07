import { BrokerError, merklePath } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import type { ChainProof, ProofPlace } from "../../../ports/chain-proof.ts";
import { keccak256 } from "../native-crypto.ts";
import type { EvmProvider } from "../rpc.ts";
import { RpcFailure } from "../rpc-failure.ts";
import { BlockRpc, isUnreached } from "./block-rpc.ts";
import { findHeader } from "./header-rlp.ts";
import { ProvenBlock, unavailable } from "./proven-block.ts";
import { ProvenBlocks } from "./proven-blocks.ts";

/** How long the reading of a block may take, for whoever waits for it. */
const blockTimeoutMs = 30_000;

/** Makes proofs of events from what an endpoint of the chain tells of a block. Nothing that does not fit the block's hash leaves it. */
export class ProofMaker {
  readonly #provider: EvmProvider;
  readonly #registry: Address;
  readonly #blocks = new ProvenBlocks((number) => this.#read(number));

  constructor(options: { readonly provider: EvmProvider; readonly registry: Address }) {
    this.#provider = options.provider;
    this.#registry = options.registry;
  }

  /** @throws BrokerError 200205 the endpoint cannot be reached; 200206 what it tells of the block makes no proof. */
  async make(place: ProofPlace, signal: AbortSignal): Promise<ChainProof> {
    const block = await untilAborted(this.#blocks.get(place.blockNumber), signal);
    const { transactionIndex, logPlace, events } = block.getBatch(place);
    const nodes = block.prove(transactionIndex);
    const path = merklePath(events, place.index, keccak256);
    return { registry: this.#registry, path, transactionIndex, logPlace, nodes, header: block.header };
  }

  async #read(blockNumber: number): Promise<ProvenBlock> {
    try {
      return await this.#ask(blockNumber, new BlockRpc(this.#provider, AbortSignal.timeout(blockTimeoutMs)));
    } catch (error) {
      if (!(error instanceof RpcFailure)) throw error;
      if (isUnreached(error)) throw new BrokerError("chainUnreachable", { cause: error });
      throw unavailable(`the chain's endpoint refused block ${blockNumber}`, error);
    }
  }

  async #ask(blockNumber: number, rpc: BlockRpc): Promise<ProvenBlock> {
    const block = await rpc.findBlock(blockNumber);
    if (block === undefined) throw unavailable(`the chain's endpoint does not have block ${blockNumber}`);
    const header = findHeader(block);
    if (header === undefined) throw unavailable(`the header of block ${blockNumber} does not hash to the block's hash`);
    const receipts = await rpc.findReceipts(block);
    if (receipts === undefined)
      throw unavailable(`the chain's endpoint no longer has the receipts of block ${blockNumber}`);
    return new ProvenBlock(blockNumber, { block, header, receipts, registry: this.#registry });
  }
}

/** @throws BrokerError 200205 when `signal` aborts first. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(new BrokerError("chainUnreachable", { details: "no answer in time" }));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
