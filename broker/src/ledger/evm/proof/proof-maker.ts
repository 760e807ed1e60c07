import { BrokerError, merklePath } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import { Turnstile } from "../../../lib/turnstile.ts";
import type { ChainProof, ProofPlace } from "../../../ports/chain-proof.ts";
import { toHex } from "../hex.ts";
import { keccak256 } from "../native-crypto.ts";
import { type ContractLog, parseLog } from "../parse-log.ts";
import type { EvmProvider } from "../rpc.ts";
import { RpcFailure } from "../rpc-failure.ts";
import { BlockRpc, isUnreached, ReceiptsTooLong, type RpcBlock, type RpcReceipt } from "./block-rpc.ts";
import { findHeader } from "./header-rlp.ts";
import { findReceiptBytes } from "./receipt-rlp.ts";
import { proveReceipt, type TrieProof } from "./receipts-trie.ts";

/** Blocks whose receipts are read at once; each may take a few times its bytes of memory. */
const blocksAtOnce = 2;
/** Blocks kept whose receipts are too long: nobody can have them read again and again. */
const tooLongMax = 1024;

interface FoundBatch {
  readonly transactionIndex: number;
  readonly logPlace: number;
  readonly log: Extract<ContractLog, { kind: "events-published" }>;
}

/** Makes proofs of events from what an endpoint of the chain tells of a block. Nothing that does not fit the block's hash leaves it. */
export class ProofMaker {
  readonly #provider: EvmProvider;
  readonly #registry: Address;
  readonly #turns = new Turnstile(blocksAtOnce);
  readonly #tooLong = new Set<unknown>();

  constructor(options: { readonly provider: EvmProvider; readonly registry: Address }) {
    this.#provider = options.provider;
    this.#registry = options.registry;
  }

  /** @throws BrokerError 200205 the endpoint cannot be reached; 200206 what it tells of the block makes no proof; 200300. */
  async make(place: ProofPlace, signal: AbortSignal): Promise<ChainProof> {
    try {
      const proof = await this.#turns.run(async () => this.#make(place, new BlockRpc(this.#provider, signal)), signal);
      if (proof === undefined) throw new BrokerError("busy", { details: "other proofs are being made" });
      return proof;
    } catch (error) {
      if (error instanceof ReceiptsTooLong) throw unavailable(`block ${place.blockNumber}: ${error.message}`, error);
      if (!(error instanceof RpcFailure)) throw error;
      if (isUnreached(error)) throw new BrokerError("chainUnreachable", { cause: error });
      throw unavailable(`the chain's endpoint refused block ${place.blockNumber}`, error);
    }
  }

  async #make(place: ProofPlace, rpc: BlockRpc): Promise<ChainProof> {
    const { blockNumber, index } = place;
    const block = await rpc.findBlock(blockNumber);
    if (block === undefined) throw unavailable(`the chain's endpoint does not have block ${blockNumber}`);
    const header = findHeader(block);
    if (header === undefined) throw unavailable(`the header of block ${blockNumber} does not hash to the block's hash`);
    const receipts = await this.#findReceipts(block, rpc);
    if (receipts === undefined)
      throw unavailable(`the chain's endpoint no longer has the receipts of block ${blockNumber}`);
    const { transactionIndex, logPlace, log } = this.#findBatch(receipts, place);
    const { nodes } = proveInBlock(block, { receipts, transactionIndex, blockNumber });
    const path = merklePath(log.events, index, keccak256);
    return { registry: this.#registry, path, transactionIndex, logPlace, nodes, header };
  }

  async #findReceipts(block: RpcBlock, rpc: BlockRpc): Promise<readonly RpcReceipt[] | undefined> {
    const { hash } = block;
    if (this.#tooLong.has(hash)) throw new ReceiptsTooLong();
    try {
      return await rpc.findReceipts(block);
    } catch (error) {
      if (error instanceof ReceiptsTooLong) this.#remember(hash);
      throw error;
    }
  }

  #remember(hash: unknown): void {
    this.#tooLong.add(hash);
    const [oldest] = this.#tooLong;
    if (this.#tooLong.size > tooLongMax) this.#tooLong.delete(oldest);
  }

  #findBatch(receipts: readonly RpcReceipt[], { address, firstSequence, blockNumber }: ProofPlace): FoundBatch {
    for (const [transactionIndex, { logs }] of receipts.entries()) {
      for (const [logPlace, raw] of logs.entries()) {
        if (raw.address.toLowerCase() !== address) continue;
        const log = parseLog(raw, this.#registry);
        if (log?.kind === "events-published" && log.firstSequence === firstSequence) {
          return { transactionIndex, logPlace, log };
        }
      }
    }
    throw unavailable(`block ${blockNumber} of the chain does not hold the event`);
  }
}

function proveInBlock(
  block: RpcBlock,
  place: {
    readonly receipts: readonly RpcReceipt[];
    readonly transactionIndex: number;
    readonly blockNumber: number;
  },
): TrieProof {
  const encoded = place.receipts.flatMap((receipt) => findReceiptBytes(receipt) ?? []);
  const proof = proveReceipt(encoded, place.transactionIndex);
  if (encoded.length === place.receipts.length && toHex(proof.root) === block["receiptsRoot"]) return proof;
  throw unavailable(`the receipts of block ${place.blockNumber} do not hash to the block's receiptsRoot`);
}

function unavailable(details: string, cause?: unknown): BrokerError {
  return new BrokerError("proofUnavailable", { details, cause });
}
