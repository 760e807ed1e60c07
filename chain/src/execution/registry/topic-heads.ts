import { toBuffer } from "@stele/eth/node";
import { rememberedKeccak } from "../../lib/remembered-keccak.ts";
import { COLD_GAS, RESET_GAS, type SlotReader, WARM_GAS } from "../interpreter/slots.ts";

/** The state of a topic, in one word of the registry's storage. `TopicRegistry.sol` describes the word. */
interface Head {
  readonly slot: Uint8Array;
  /** The word without its leading zeros. */
  readonly word: Buffer;
}

/** Slot of the registry's mapping `_heads`, from topics to their words. */
const HEADS_SLOT = 2;
const WORD = 32;
/**
 * Length of a word without leading zeros, if the topic exists, is open, and everyone may write to it. Then the owner (bytes 21 to 24 from the end) is not zero,
 * and the bytes before the owner are zero.
 */
const OPEN_BYTES = { min: 21, max: 24 };
/** Offsets from the end of the word, in bytes. */
const LAST_BLOCK_AT = 14;
const SEQUENCE_AT = 8;
/** The lower 48 bits of the sequence. */
const SEQUENCE_LOW_AT = 6;
const UINT48_BYTES = 6;
const UINT48_END = 2 ** 48;

/** The words of topics, as one `publish` changes them in memory, and the gas that the contract would use to read and write them. */
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
   * Appends events to a topic. `topic` is its address, as a word of calldata. Returns the sequence of the first event. Returns undefined if the topic does
   * not exist, is not open to everyone, or needs more than 48 bits for its sequence or the block number.
   */
  append(topic: Buffer, count: number): number | undefined {
    const key = topic.toString("latin1");
    const known = this.#heads.get(key);
    const { slot, word } = known ?? this.#read(topic);
    if (word.length < OPEN_BYTES.min || word.length > OPEN_BYTES.max) return undefined;
    const last = readSequence(word);
    if (last + count >= UINT48_END || this.#blockNumber >= UINT48_END) return undefined;
    this.gas += known === undefined ? COLD_GAS + RESET_GAS : 2 * WARM_GAS;
    const changed = known === undefined ? Buffer.from(word) : word;
    changed.writeUIntBE(this.#blockNumber, changed.length - LAST_BLOCK_AT, UINT48_BYTES);
    changed.writeUIntBE(last + count, changed.length - SEQUENCE_LOW_AT, UINT48_BYTES);
    if (known === undefined) this.#heads.set(key, { slot, word: changed });
    return last + 1;
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
  return word.readUIntBE(word.length - SEQUENCE_LOW_AT, UINT48_BYTES);
}
