import { topicRegistryAbi } from "@stele/contracts";
import { fromHex } from "@stele/eth/node";
import { toFunctionSelector } from "viem/utils";
import type { Address } from "../../../domain/topic.ts";

/** A batch as the contract's argument. */
export interface EncodedBatch {
  readonly address: Address;
  readonly count: number;
  readonly eventsRoot: Uint8Array;
  readonly events: Uint8Array;
}

const word = 32;
const selectorBytes = 4;
/** topic, count, eventsRoot, offset of events, length of events. */
const tupleWords = 5;
const eventsOffset = 4 * word;
const addressBytes = 20;

const publishAbi = topicRegistryAbi.find((item) => item.type === "function" && item.name === "publish");
if (publishAbi?.type !== "function") throw new Error("the registry's interface lacks publish");
const selector = fromHex(toFunctionSelector(publishAbi));

/** Calldata of `publish(Batch[])`, in one allocation; viem's encoder works on hex and takes a hundred times as long. */
export function encodePublish(batches: readonly EncodedBatch[]): Buffer {
  let bytes = selectorBytes + 2 * word;
  for (const batch of batches) bytes += word + tupleBytes(batch);
  const target = Buffer.alloc(bytes);
  target.set(selector);
  writeNumber(target, selectorBytes, word);
  writeNumber(target, selectorBytes + word, batches.length);
  const heads = selectorBytes + 2 * word;
  let tuple = heads + batches.length * word;
  for (const [index, batch] of batches.entries()) {
    writeNumber(target, heads + index * word, tuple - heads);
    writeTuple(target, tuple, batch);
    tuple += tupleBytes(batch);
  }
  return target;
}

function tupleBytes(batch: EncodedBatch): number {
  return tupleWords * word + Math.ceil(batch.events.length / word) * word;
}

function writeTuple(target: Buffer, at: number, batch: EncodedBatch): void {
  target.write(batch.address.slice(2), at + word - addressBytes, "hex");
  writeNumber(target, at + word, batch.count);
  target.set(batch.eventsRoot, at + 2 * word);
  writeNumber(target, at + 3 * word, eventsOffset);
  writeNumber(target, at + 4 * word, batch.events.length);
  target.set(batch.events, at + tupleWords * word);
}

/** Writes an integer below 2^32 into the word at `at`. */
function writeNumber(target: Buffer, at: number, value: number): void {
  target.writeUInt32BE(value, at + word - 4);
}
