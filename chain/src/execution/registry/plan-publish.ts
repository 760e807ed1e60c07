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

/** What a `publish` does. */
export interface Publish {
  readonly gas: number;
  readonly logs: readonly Log[];
  readonly slots: readonly (readonly [slot: Uint8Array, word: Uint8Array])[];
}

const WORD = 32;
/** Words before the events in a log's data: eventsRoot, count, offset of the events, length of the events. */
const DATA_WORDS = 4;
const DATA_EVENTS_OFFSET = 3 * WORD;
/** The contract builds a log's data behind this many words, and clears the word that follows it. */
const MEMORY_WORDS = 9;

const EVENTS_PUBLISHED = keccak256(Buffer.from("EventsPublished(address,uint64,address,bytes32,uint32,bytes)"));

/** What a call of the registry does if it is a `publish` that accepts every batch; undefined for all other calls. Changes nothing. */
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
  const datas = copyAlone(input);
  const logs: Log[] = [];
  let [eventWords, wordsMax] = [0, 0];
  let sequence = { number: -1, word: sender };
  for (const batch of batches) {
    const topic = input.subarray(batch.at, batch.at + WORD);
    const number = heads.append(topic, batch.count);
    if (number === undefined) return undefined;
    if (number !== sequence.number) sequence = { number, word: toWord(numberBytes(number)) };
    const topics = [EVENTS_PUBLISHED, topic, sequence.word, sender];
    logs.push({ address: registry, topics, data: toLogData(datas, batch), copied: toCopied(input, batch) });
    const words = toWords(batch.eventsBytes);
    eventWords += words;
    wordsMax = Math.max(wordsMax, words);
  }
  const fixed = publishGas.base + publishGas.perBatch * batches.length + heads.gas;
  const gas = fixed + (COPY_WORD_GAS + LOG_BYTE_GAS * WORD) * eventWords + memoryGas(MEMORY_WORDS + wordsMax);
  // A write of a slot fails if no more gas than this is left behind it.
  const isPaid = message.gasLimit - message.intrinsicGas > gas + STORE_GAS_MIN;
  return isPaid ? { gas, logs, slots: heads.changes() } : undefined;
}

/** Memory of its own for all logs of a call: a block keeps them, and slices of Node's pool would keep what else is in the pool. */
function copyAlone(input: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(input.length);
  input.copy(copy);
  return copy;
}

/** The words of a batch in another order, with another offset: changes them in the copy of the calldata. */
function toLogData(datas: Buffer, { at, eventsBytes }: BatchInput): Buffer {
  const end = at + TUPLE_BYTES + toWords(eventsBytes) * WORD;
  const data = datas.subarray(at + COUNT_AT, end);
  for (let index = 0; index < WORD; index += 1) {
    const count = data[index] ?? 0;
    data[index] = data[index + WORD] ?? 0;
    data[index + WORD] = count;
  }
  data[DATA_EVENTS_OFFSET - 1] = DATA_EVENTS_OFFSET;
  data.fill(0, DATA_WORDS * WORD + eventsBytes);
  return data;
}

/** The length of the events and the events: the same bytes in the calldata and in the log. */
function toCopied({ buffer, byteOffset }: Buffer, { at, eventsBytes }: BatchInput): CopiedBytes {
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
