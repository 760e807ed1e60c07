import { everyone, topicRegistryAbi } from "@stele/contracts";
import { fromHex } from "@stele/eth/node";
import { encodeAbiParameters, toFunctionSelector } from "viem/utils";
import type { Address } from "../../../domain/topic.ts";

export interface EncodedBatch {
  readonly address: Address;
  readonly count: number;
  readonly eventsRoot: Uint8Array;
  readonly events: Uint8Array;
}

const word = 32;
const selectorBytes = 4;
/** Words of a batch before the bytes of its events: topic, count, eventsRoot, offset of events, length of events. */
const tupleWords = 5;
const eventsOffset = 4 * word;
const addressBytes = 20;

/** `publish` decides about each batch by itself; `publishAll` accepts all batches or none. */
export type PublishFunction = "publish" | "publishAll";

const publishSelectors = { publish: selectorOf("publish"), publishAll: selectorOf("publishAll") };
const openAndPublishSelector = selectorOf("openAndPublish");

/** The topics that a transaction opens, and the set of writers of new ones. */
export interface Openings {
  readonly names: readonly string[];
  readonly writers: number | undefined;
}

/**
 * Calldata of `publish(Batch[])` or `publishAll(Batch[])`, in one allocation; viem's encoder works on hex and takes a hundred times as long.
 */
export function encodePublish(batches: readonly EncodedBatch[], name: PublishFunction = "publish"): Buffer {
  const target = Buffer.alloc(selectorBytes + word + batchesBytes(batches));
  target.set(publishSelectors[name]);
  writeNumber(target, selectorBytes, word);
  writeBatches(target, selectorBytes + word, batches);
  return target;
}

/** Calldata of `openAndPublish(string[], uint32, Batch[])`. */
export function encodeOpenAndPublish(
  { names, writers = everyone }: Openings,
  batches: readonly EncodedBatch[],
): Buffer {
  const encodedNames = fromHex(encodeAbiParameters([{ type: "string[]" }], [names])).subarray(word); // Without the offset of the array.
  const namesOffset = 3 * word;
  const target = Buffer.alloc(selectorBytes + namesOffset + encodedNames.length + batchesBytes(batches));
  target.set(openAndPublishSelector);
  writeNumber(target, selectorBytes, namesOffset);
  writeNumber(target, selectorBytes + word, writers);
  writeNumber(target, selectorBytes + 2 * word, namesOffset + encodedNames.length);
  target.set(encodedNames, selectorBytes + namesOffset);
  writeBatches(target, selectorBytes + namesOffset + encodedNames.length, batches);
  return target;
}

function selectorOf(name: PublishFunction | "openAndPublish"): Uint8Array {
  const item = topicRegistryAbi.find((one) => one.type === "function" && one.name === name);
  if (item?.type !== "function") throw new Error(`the registry's interface lacks ${name}`);
  return fromHex(toFunctionSelector(item));
}

function batchesBytes(batches: readonly EncodedBatch[]): number {
  let bytes = word;
  for (const batch of batches) bytes += word + tupleBytes(batch);
  return bytes;
}

function writeBatches(target: Buffer, at: number, batches: readonly EncodedBatch[]): void {
  writeNumber(target, at, batches.length);
  const heads = at + word;
  let tuple = heads + batches.length * word;
  for (const [index, batch] of batches.entries()) {
    writeNumber(target, heads + index * word, tuple - heads);
    writeTuple(target, tuple, batch);
    tuple += tupleBytes(batch);
  }
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
