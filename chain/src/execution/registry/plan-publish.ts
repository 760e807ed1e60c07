import { keccak256, toBuffer } from "@stele/eth/node";
import type { CopiedBytes, Log } from "../../blocks/log.ts";
import { LOG_BYTE_GAS, COPY_WORD_GAS, STORE_GAS_MIN } from "../interpreter/instructions.ts";
import { memoryGas } from "../interpreter/memory.ts";
import type { SlotReader } from "../interpreter/slots.ts";
import type { Message } from "../execute.ts";
import { type BatchInput, COUNT_AT, readPublish, toWords, TUPLE_BYTES } from "./publish-input.ts";
import type { RegistryCode } from "./registry-code.ts";
import { TopicHeads } from "./topic-heads.ts";

export interface PublishCall {
  readonly message: Message;
  readonly registry: Uint8Array;
  readonly blockNumber: number;
  readonly readSlot: SlotReader;
  readonly publishGas: RegistryCode["publishGas"];
}

/** The effects of a `publish`. */
export interface Publish {
  readonly gas: number;
  readonly logs: readonly Log[];
  readonly slots: readonly (readonly [slot: Uint8Array, word: Uint8Array])[];
}

const WORD = 32;
/** Words before the events in a log's data: eventsRoot, count, offset of the events, length of the events. */
const DATA_WORDS = 4;
const DATA_EVENTS_OFFSET = 3 * WORD;
/** Words of memory that the contract uses besides the events: 4 that Solidity reserves, DATA_WORDS, and one that it clears after the events. */
const MEMORY_WORDS = 9;

const EVENTS_PUBLISHED = keccak256(Buffer.from("EventsPublished(address,uint64,address,bytes32,uint32,bytes)"));

/**
 * Computes the effects of a call of the registry without applying them. Undefined if the interpreter must run the call: it is not a plain `publish`, its gas may
 * not suffice, or the registry may skip a batch.
 */
export function planPublish({
  message,
  registry,
  blockNumber,
  readSlot,
  publishGas,
}: PublishCall): Publish | undefined {
  const input = toBuffer(message.data);
  const batches = message.accessList.length === 0 ? readPublish(input) : undefined;
  if (batches === undefined) return undefined;
  const heads = new TopicHeads(readSlot, blockNumber);
  const sender = toWord(toBuffer(message.from));
  const calldata = copyOutsidePool(input);
  const logs: Log[] = [];
  let [eventWords, wordsMax] = [0, 0];
  let sequence = { number: -1, word: sender };
  for (const batch of batches) {
    const topic = input.subarray(batch.at, batch.at + WORD);
    const number = heads.append(topic, batch.count);
    if (number === undefined) return undefined;
    if (number !== sequence.number) sequence = { number, word: toWord(numberBytes(number)) };
    const topics = [EVENTS_PUBLISHED, topic, sequence.word, sender];
    logs.push({ address: registry, topics, data: toLogData(calldata, batch), copied: toCopiedBytes(input, batch) });
    const words = toWords(batch.eventsBytes);
    eventWords += words;
    wordsMax = Math.max(wordsMax, words);
  }
  const fixed = publishGas.base + publishGas.perBatch * batches.length + heads.gas;
  const gas = fixed + (COPY_WORD_GAS + LOG_BYTE_GAS * WORD) * eventWords + memoryGas(MEMORY_WORDS + wordsMax);
  // A storage write fails unless more than STORE_GAS_MIN is left, so the call must offer that much above its cost.
  const hasEnoughGas = message.gasLimit - message.intrinsicGas > gas + STORE_GAS_MIN;
  return hasEnoughGas ? { gas, logs, slots: heads.changes() } : undefined;
}

/** Copies the calldata once for all logs of a call. Not into Node's buffer pool: a block keeps its logs, and a slice of the pool would keep the whole pool. */
function copyOutsidePool(input: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(input.length);
  input.copy(copy);
  return copy;
}

/** Turns a batch in the copied calldata into its log's data, in place: swaps count and eventsRoot, sets the offset of the events, and clears the padding. */
function toLogData(calldata: Buffer, { at, eventsBytes }: BatchInput): Buffer {
  const end = at + TUPLE_BYTES + toWords(eventsBytes) * WORD;
  const data = calldata.subarray(at + COUNT_AT, end);
  for (let index = 0; index < WORD; index += 1) {
    const count = data[index] ?? 0;
    data[index] = data[index + WORD] ?? 0;
    data[index + WORD] = count;
  }
  data[DATA_EVENTS_OFFSET - 1] = DATA_EVENTS_OFFSET;
  data.fill(0, DATA_WORDS * WORD + eventsBytes);
  return data;
}

/** Which bytes of a log's data are a copy of the calldata: the length of the events, and the events. */
function toCopiedBytes({ buffer, byteOffset }: Buffer, { at, eventsBytes }: BatchInput): CopiedBytes {
  const length = WORD + eventsBytes;
  return { dataOffset: DATA_EVENTS_OFFSET, length, buffer, byteOffset: byteOffset + at + TUPLE_BYTES - WORD };
}

function toWord(bytes: Buffer): Buffer {
  const word = Buffer.alloc(WORD);
  bytes.copy(word, WORD - bytes.length);
  return word;
}

function numberBytes(value: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(value, 0, bytes.length);
  return bytes;
}
