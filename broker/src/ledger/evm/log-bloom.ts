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

/** Tells from a header alone whether its block can have a wanted log of a contract. */
export class LogBloom {
  /** Bits that a log of the contract sets. */
  readonly #bits: readonly number[];
  /** Bits that the first topic of each wanted log sets. */
  readonly #wanted: readonly (readonly number[])[];

  /** `signatures` are the first topics of the wanted logs. */
  constructor(contract: Address, signatures: readonly Hex[]) {
    this.#bits = bitsOf(contract);
    this.#wanted = signatures.map(bitsOf);
  }

  /**
   * Whether a block may have a wanted log of the contract; false only if it certainly has none. On some chains a missing bloom, or an empty one in a block
   * with transactions, proves nothing.
   */
  mayHold(header: Header): boolean {
    if (header.transactionsRoot === noTransactions) return false;
    return !hasUsableBloom(header) || this.matches(header);
  }

  /** Whether the block's bloom has the bits of a wanted log of the contract. Logs of other contracts may have set these bits. */
  matches(header: Header): boolean {
    if (!hasUsableBloom(header)) return false;
    const bloom = fromHex(header.logsBloom);
    const has = (bits: readonly number[]): boolean => bits.every((bit) => hasBloomBit(bloom, bit));
    return has(this.#bits) && this.#wanted.some(has);
  }
}

function bitsOf(item: Hex): readonly number[] {
  return bloomBits(keccak256(fromHex(item)));
}

function hasUsableBloom(header: Header): header is Header & { readonly logsBloom: Hex } {
  const { logsBloom } = header;
  return logsBloom !== undefined && logsBloom.length === 2 + 2 * bloomBytes && !/^0x0*$/.test(logsBloom);
}
