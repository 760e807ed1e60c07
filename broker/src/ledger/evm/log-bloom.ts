import {
  bloomBits,
  bloomBytes,
  emptyTrieRoot,
  fromHex,
  hasBloomBit,
  type Hex,
  keccak256,
  toHex,
} from "@stele/eth/node";
import type { Address } from "../../domain/topic.ts";
import type { Header } from "./endpoint/rpc.ts";

/** The transactionsRoot of a block without transactions. */
const noTransactions = toHex(emptyTrieRoot);

/** Finds blocks without a log of a contract by their headers alone. */
export class LogBloom {
  /** Bits that a log of the contract sets. */
  readonly #bits: readonly number[];

  constructor(contract: Address) {
    this.#bits = bloomBits(keccak256(fromHex(contract)));
  }

  /**
   * Whether a block may have a log of the contract; false only if it certainly has none. On some chains a missing bloom, or an empty one in a block
   * with transactions, proves nothing.
   */
  mayHold(header: Header): boolean {
    if (header.transactionsRoot === noTransactions) return false;
    return !isTelling(header) || this.promises(header);
  }

  /** Whether the block's bloom says that it has a log of the contract. That is wrong only for blocks with many logs of others. */
  promises(header: Header): boolean {
    if (!isTelling(header)) return false;
    const bloom = fromHex(header.logsBloom);
    return this.#bits.every((bit) => hasBloomBit(bloom, bit));
  }
}

function isTelling(header: Header): header is Header & { readonly logsBloom: Hex } {
  const { logsBloom } = header;
  return logsBloom !== undefined && logsBloom.length === 2 + 2 * bloomBytes && !/^0x0*$/.test(logsBloom);
}
