import { toBuffer } from "@stele/eth/node";
import { rememberedKeccak } from "../../lib/remembered-keccak.ts";
import { COLD_GAS, RESET_GAS, type SlotReader, WARM_GAS } from "../interpreter/slots.ts";

/** A topic's word in the registry's storage, which the registry describes in `TopicRegistry.sol`. */
interface Head {
  readonly slot: Uint8Array;
  /** Without the leading zeros. */
  readonly word: Buffer;
}

/** Slot of the registry's mapping from topics to their words. */
const HEADS_SLOT = 2;
const WORD = 32;
/**
 * A word has 21 to 24 bytes if its owner is not zero (bytes 21 to 24 from the end), everyone may write to the topic, and the topic is open (the bytes above
 * are zero).
 */
const OPEN_BYTES_LEAST = 21;
const OPEN_BYTES_MOST = 24;
/** Offsets from the end of the word, in bytes. */
const LAST_BLOCK_AT = 14;
const SEQUENCE_AT = 8;
const SHORT_SEQUENCE_AT = 6;
const NUMBER_BYTES = 6;
const NUMBER_END = 2 ** (8 * NUMBER_BYTES);

/** The words of topics as a `publish` changes them, and the gas of reading and writing them. */
export class TopicHeads {
  readonly #readSlot: SlotReader;
  readonly #blockNumber: number;
  readonly #heads = new Map<string, Head>();
  readonly #preimage = Buffer.alloc(2 * WORD);
  gas = 0;

  constructor(readSlot: SlotReader, blockNumber: number) {
    this.#readSlot = readSlot;
    this.#blockNumber = blockNumber;
    this.#preimage[this.#preimage.length - 1] = HEADS_SLOT;
  }

  /**
   * Appends events to a topic, given as its word of calldata. Returns the sequence of the first event; undefined if the topic is not open to everyone, or the
   * sequence or the block number does not fit into 48 bits.
   */
  append(topic: Buffer, count: number): number | undefined {
    const key = topic.toString("latin1");
    const known = this.#heads.get(key);
    const { slot, word } = known ?? this.#read(topic);
    if (word.length < OPEN_BYTES_LEAST || word.length > OPEN_BYTES_MOST) return undefined;
    const before = readSequence(word);
    if (before + count >= NUMBER_END || this.#blockNumber >= NUMBER_END) return undefined;
    this.gas += known === undefined ? COLD_GAS + RESET_GAS : 2 * WARM_GAS;
    const after = known === undefined ? Buffer.from(word) : word;
    after.writeUIntBE(this.#blockNumber, after.length - LAST_BLOCK_AT, NUMBER_BYTES);
    after.writeUIntBE(before + count, after.length - SHORT_SEQUENCE_AT, NUMBER_BYTES);
    if (known === undefined) this.#heads.set(key, { slot, word: after });
    return before + 1;
  }

  /** The changed words by slot. */
  changes(): readonly (readonly [slot: Uint8Array, word: Uint8Array])[] {
    return Array.from(this.#heads.values(), ({ slot, word }) => [slot, word] as const);
  }

  #read(topic: Buffer): { readonly slot: Uint8Array; readonly word: Buffer } {
    this.#preimage.set(topic);
    const slot = rememberedKeccak(this.#preimage);
    return { slot, word: toBuffer(this.#readSlot(slot)) };
  }
}

/** The topic's last sequence; infinite above 48 bits. */
function readSequence(word: Buffer): number {
  const at = word.length - SEQUENCE_AT;
  if (word.readUInt16BE(at) !== 0) return Number.POSITIVE_INFINITY;
  return word.readUIntBE(word.length - SHORT_SEQUENCE_AT, NUMBER_BYTES);
}
