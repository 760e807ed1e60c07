import { topicRegistryAbi } from "@stele/contracts";
import { encodeEvents, findCheckedBatch, MerkleTree, merkleRoot, verifyCompactProof } from "@stele/wire";
import { encodeAbiParameters, encodeEventTopics, type Hex, toHex } from "viem";
import { expect, test } from "vitest";
import type { Event, EventBatch } from "../domain/event.ts";
import { toPosition } from "../domain/position.ts";
import { parseTopicName } from "../domain/topic-name.ts";
import { eventsOf } from "../engine/batch-events.ts";
import { EventPlaces } from "./event-places.ts";

function batchOf(count: number, logIndex = 0): EventBatch {
  const events = Array.from({ length: count }, (_, index) => ({
    content: Buffer.from(`event ${index}`),
    extensions: [["svc-n", String(index)] as const],
  }));
  return {
    topic: parseTopicName("places"),
    firstSequence: 11,
    firstPosition: toPosition(7, 0),
    count,
    blockNumber: 7,
    transactionHash: `0x${"ab".repeat(32)}`,
    publisher: `0x${"5e".repeat(20)}`,
    logIndex,
    events: encodeEvents(events),
  };
}

/** The log of the batch on the chain. */
function logOf({ events, count, firstSequence }: EventBatch) {
  const data = encodeAbiParameters(
    [{ type: "bytes32" }, { type: "uint32" }, { type: "bytes" }],
    [toHex(merkleRoot(events)), count, toHex(events)],
  );
  const args = {
    topic: `0x${"70".repeat(20)}`,
    firstSequence: BigInt(firstSequence),
    sender: `0x${"ab".repeat(20)}`,
  } as const;
  return { topics: encodeEventTopics({ abi: topicRegistryAbi, eventName: "EventsPublished", args }) as Hex[], data }; // No argument is omitted.
}

let trees = 0;
const createTree = (encoded: Uint8Array): MerkleTree => {
  trees += 1;
  return new MerkleTree(encoded);
};

test.each([1, 2, 5, 1000])("every event of a batch of %i gets a proof that passes verification", (count) => {
  const batch = batchOf(count);
  const places = new EventPlaces({ prefix: "svc-" });
  const checked = findCheckedBatch(logOf(batch));
  for (const event of eventsOf(batch)) {
    const extensions = extensionsOf(places, event);
    const {
      "svc-block": block,
      "svc-tx": tx,
      "svc-publisher": publisher,
      "svc-proof": proof = "",
      ...own
    } = extensions;
    expect({ block, tx, publisher }).toEqual({ block: "7", tx: batch.transactionHash, publisher: batch.publisher });
    const payload = { content: event.content, extensions: Object.entries(own) };
    expect(verifyCompactProof({ proof, event: payload, batch: checked })).toBe(true);
    expect(Number(proof.split("/")[0])).toBe(event.sequence - batch.firstSequence);
  }
});

test("computes the paths of a batch once, even if the batch is read again", () => {
  const places = new EventPlaces({ prefix: "svc-", createTree });
  trees = 0;
  for (const batch of [batchOf(1000), batchOf(1000)]) for (const event of eventsOf(batch)) places.extensionsOf(event);
  expect(trees).toBe(1);
});

test("after a reorg, proves a batch whose log has the place of another batch of the transaction before the reorg", () => {
  const places = new EventPlaces({ prefix: "svc-" });
  for (const batch of [batchOf(5, 1), batchOf(3, 1)]) {
    const checked = findCheckedBatch(logOf(batch));
    for (const event of eventsOf(batch)) {
      const { "svc-proof": proof = "" } = extensionsOf(places, event);
      expect(verifyCompactProof({ proof, event, batch: checked })).toBe(true);
    }
  }
});

test("recomputes the least recently used batch once the cache is full", () => {
  const places = new EventPlaces({ prefix: "svc-", createTree });
  const large = batchOf(60_000);
  const [event] = eventsOf(large);
  const use = (logIndex: number): void => {
    if (event !== undefined) places.extensionsOf({ ...event, batch: { ...large, logIndex } });
  };
  trees = 0;
  for (const logIndex of [0, 1, 0, 2, 0]) use(logIndex);
  expect(trees).toBe(3);
  use(1);
  expect(trees).toBe(4);
});

test("replaces the event's own extension `x-block` if the prefix is `x-`", () => {
  const places = new EventPlaces({ prefix: "x-" });
  const [event] = eventsOf(batchOf(1));
  if (event === undefined) throw new Error("no event");
  const claimed: Event = {
    ...event,
    extensions: [
      ["x-block", "1"],
      ["svc-block", "2"],
    ],
  };
  expect(places.extensionsOf(claimed).slice(0, 2)).toEqual([
    ["svc-block", "2"],
    ["x-block", "7"],
  ]);
});

test("adds no extensions to an event without a batch", () => {
  const places = new EventPlaces({ prefix: "svc-" });
  const [event] = eventsOf(batchOf(1));
  if (event === undefined) throw new Error("no event");
  const { batch: _, ...alone } = event;
  expect(places.extensionsOf(alone)).toEqual(event.extensions);
});

function extensionsOf(places: EventPlaces, event: Event): Readonly<Record<string, string>> {
  return Object.fromEntries(places.extensionsOf(event));
}
