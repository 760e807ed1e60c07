import { toHex } from "@stele/eth/node";
import type { BlockHead } from "../blocks/block.ts";
import type { ReadableChain } from "../chain/readable-chain.ts";
import { invalidParams, serverError } from "../rpc-error.ts";
import type { StateView } from "../state/state-view.ts";
import { isRecord, toFixed, toQuantityValue } from "./params.ts";

/** Tags of the newest block, which is also the safe and the final block: the chain has one signer and no reorganisations. */
const HEAD_TAGS: readonly unknown[] = [undefined, "latest", "pending", "safe", "finalized"];

/** The block that a tag, a number or an EIP-1898 object names; undefined if the chain has no such block. */
export function findBlock(chain: ReadableChain, tag: unknown): BlockHead | undefined {
  if (HEAD_TAGS.includes(tag)) return chain.head;
  if (tag === "earliest") return chain.blocks.getHead(0n);
  if (isRecord(tag)) return findByObject(chain, tag);
  const number = toQuantityValue(tag, "block number");
  return number > chain.head.header.number ? undefined : chain.blocks.getHead(number);
}

function findByObject(chain: ReadableChain, tag: Readonly<Record<string, unknown>>): BlockHead | undefined {
  if (tag["blockHash"] !== undefined) return chain.blocks.findHeadByHash(toFixed(tag["blockHash"], 32, "block hash"));
  if (tag["blockNumber"] === undefined)
    throw invalidParams("invalid block: neither blockHash nor blockNumber is given");
  return findBlock(chain, tag["blockNumber"]);
}

export function getBlock(chain: ReadableChain, tag: unknown): BlockHead {
  const head = findBlock(chain, tag);
  if (head === undefined) throw serverError("header not found");
  return head;
}

/**
 * The state after a block.
 * @throws ProviderRpcError with geth's message if the chain lacks the block or no longer keeps its state.
 */
export async function getState(
  chain: ReadableChain,
  tag: unknown,
): Promise<{ readonly head: BlockHead; readonly view: StateView }> {
  const head = getBlock(chain, tag);
  const view = await chain.findState(head.header.number);
  if (view === undefined) {
    const root = toHex(head.header.stateRoot).slice(2);
    throw serverError(`missing trie node ${root} (path ) state ${toHex(head.header.stateRoot)} is not available`);
  }
  return { head, view };
}
