import { bloomBits, bloomBytes, emptyTrieRoot, fromHex, hasBloomBit, keccak256, toHex } from "@stele/eth/node";
import type { Address } from "../../domain/topic.ts";
import type { Header } from "./endpoint/rpc.ts";

/** Root of the transactions of a block without any. */
const noTransactions = toHex(emptyTrieRoot);

/** Says of blocks, by their headers alone, that they hold no log of a contract. */
export class LogBloom {
  /** Bits that a log of the contract sets. */
  readonly #bits: readonly number[];

  constructor(contract: Address) {
    this.#bits = bloomBits(keccak256(fromHex(contract)));
  }

  /** False only when that is sure: a bloom that is missing, or empty in a block with transactions, proves nothing on some chains. */
  mayHold({ logsBloom, transactionsRoot }: Header): boolean {
    if (transactionsRoot === noTransactions) return false;
    if (logsBloom === undefined || logsBloom.length !== 2 + 2 * bloomBytes || /^0x0*$/.test(logsBloom)) return true;
    const bloom = fromHex(logsBloom);
    return this.#bits.every((bit) => hasBloomBit(bloom, bit));
  }
}
