import { type Address, concatHex, type Hex, keccak256, numberToHex } from "viem";
import { alice, type Batch } from "./registry-fixture.ts";

export function batchOf(topic: Address, count: number, events: Hex = eventsOf(count)): Batch {
  return { topic, count, events, eventsRoot: keccak256(concatHex([topic, numberToHex(count), events])) };
}

/** `count` times the shortest possible event. No encoder wrote these bytes; the contract does not read them. */
function eventsOf(count: number): Hex {
  return `0x${"c280c0".repeat(count)}`;
}

export function published(batch: Batch, firstSequence: bigint, sender: Address = alice.address) {
  return { eventName: "EventsPublished", args: { firstSequence, sender, ...batch } };
}

export function rejected(batch: Batch, reason: number, sender: Address = alice.address) {
  const args = { topic: batch.topic, sender, eventsRoot: batch.eventsRoot, reason };
  return { eventName: "BatchRejected", args };
}
