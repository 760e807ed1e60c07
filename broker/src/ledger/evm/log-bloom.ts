import type { Address } from "../../domain/topic.ts";
import { fromHex } from "./hex.ts";
import { keccak256 } from "./native-crypto.ts";
import type { Header } from "./endpoint/rpc.ts";

const bloomBytes = 256;
/** Root of the transactions of a block without any. */
const noTransactions = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";

/** Says of blocks, by their headers alone, that they hold no log of a contract. */
export class LogBloom {
  /** Bits that a log of the contract sets (yellow paper, section 4.3.1). */
  readonly #bits: readonly number[];

  constructor(contract: Address) {
    const hash = Buffer.from(keccak256(fromHex(contract)));
    this.#bits = [0, 2, 4].map((at) => hash.readUInt16BE(at) & (8 * bloomBytes - 1));
  }

  /** False only when that is sure: a bloom that is missing, or empty in a block with transactions, proves nothing on some chains. */
  mayHold({ logsBloom, transactionsRoot }: Header): boolean {
    if (transactionsRoot === noTransactions) return false;
    if (logsBloom === undefined || logsBloom.length !== 2 + 2 * bloomBytes || /^0x0*$/.test(logsBloom)) return true;
    const bloom = fromHex(logsBloom);
    return this.#bits.every((bit) => isSet(bloom, bit));
  }
}

function isSet(bloom: Uint8Array, bit: number): boolean {
  return ((bloom[bloomBytes - 1 - (bit >> 3)] ?? 0) & (1 << (bit & 7))) !== 0;
}
