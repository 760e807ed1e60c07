import { bloomBits, bloomBytes, emptyTrieRoot, fromHex, hasBloomBit, keccak256, toHex } from "@stele/eth/node";
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
  mayHold({ logsBloom, transactionsRoot }: Header): boolean {
    if (transactionsRoot === noTransactions) return false;
    if (logsBloom === undefined || logsBloom.length !== 2 + 2 * bloomBytes || /^0x0*$/.test(logsBloom)) return true;
    const bloom = fromHex(logsBloom);
    return this.#bits.every((bit) => hasBloomBit(bloom, bit));
  }
}
