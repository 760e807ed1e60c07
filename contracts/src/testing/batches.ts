import { type Address, concatHex, type Hex, keccak256, numberToHex } from "viem";
import { alice, type Batch } from "./registry-fixture.ts";

export function batchOf(topic: Address, count: number, events: Hex = "0xc0"): Batch {
  return { topic, count, events, eventsRoot: keccak256(concatHex([topic, numberToHex(count), events])) };
}

export function published(batch: Batch, firstSequence: bigint, sender: Address = alice.address) {
  const { topic, eventsRoot, count, events } = batch;
  return { address: topic, eventName: "EventsPublished", args: { firstSequence, sender, eventsRoot, count, events } };
}

export function rejected(registry: Address, batch: Batch, reason: number) {
  const args = { topic: batch.topic, sender: alice.address, eventsRoot: batch.eventsRoot, reason };
  return { address: registry, eventName: "BatchRejected", args };
}
