import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EventBatch } from "../domain/event.ts";
import { endOfBlock, positionZero } from "../domain/position.ts";
import { type BatchRange, IndexDamagedError, type IndexedBlock, type Store } from "./store.ts";
import { checksumOfBytes } from "../lib/bytes-checksum.ts";
import { alpha, batchOf, beta, blockOf, group, hashOf, history } from "./store-examples.contract.ts";

/** An empty store that is not started, and a way to change a byte of a stored batch. */
export interface DamagedStore {
  readonly store: Store;
  damageEvents(batch: EventBatch): Promise<void>;
}

const everything: BatchRange = {
  after: positionZero,
  upTo: endOfBlock(6),
  topic: undefined,
  batchesMax: 1000,
  bytesMax: 1 << 30,
};

/** The Store port's guarantees about damaged rows. */
export function testDamage(name: string, create: () => Promise<DamagedStore>): void {
  describe(`${name} never returns damaged data`, () => {
    let damaged: DamagedStore;
    let store: Store;
    beforeEach(async () => {
      damaged = await create();
      store = damaged.store;
      await store.start();
      await store.applyBlocks(group, copyOf(history));
    });
    afterEach(async () => store.stop());

    /** Events 4 and 5 of alpha: the second batch in block 4. */
    const batch = batchOf(alpha, { block: 4, index: 1, sequence: 4, count: 2 });
    const place = { topic: alpha, sequence: 5 };

    it("every read refuses a batch with changed events, and names its block", async () => {
      await damaged.damageEvents(batch);
      const reads = [
        () => store.findBatch(group, place),
        () => store.readBatches(group, everything),
        () => store.readBatches(group, { ...everything, topic: alpha }),
      ];
      for (const read of reads) {
        const error: unknown = await read().catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(IndexDamagedError);
        expect(error).toMatchObject({ blocks: [4] });
      }
      expect(await store.findBatch(group, { topic: alpha, sequence: 8 })).toMatchObject({ firstSequence: 8 });
      expect(await store.readBatches(group, { ...everything, topic: beta })).toHaveLength(2);
    });

    it("repairBatches reports a damaged batch and repairs it, so that reads return it again", async () => {
      await damaged.damageEvents(batch);
      const block = copyOf(history)[2] ?? blockOf(4);
      expect(await store.repairBatches(group, block)).toEqual([batch]);
      expect(await store.findBatch(group, place)).toEqual(batch);
      expect(await store.readBatches(group, everything)).toEqual(history.flatMap(({ batches }) => batches));
      expect(await store.countEventsAfter(group, alpha, positionZero)).toBe(6);
      expect(await store.repairBatches(group, block)).toEqual([]);
    });

    it("drops only the events of a batch that is stored as given; a dropped batch does not count as damaged", async () => {
      const other = { ...batch, transactionHash: hashOf(1) };
      expect(await store.dropEvents(group, [other])).toEqual([]);
      expect(await store.dropEvents(group, [{ ...batch, events: Uint8Array.of(1) }])).toEqual([]);
      expect(await store.findBatch(group, place)).toEqual(batch);
      expect(await store.dropEvents(group, [batch])).toEqual([batch]);
      const { events, ...rest } = batch;
      const dropped = { byteCount: events.length, checksum: checksumOfBytes(events) };
      expect(await store.findBatch(group, place)).toEqual({ ...rest, events: new Uint8Array(0), dropped });
      for (const one of copyOf(history)) expect(await store.repairBatches(group, one)).toEqual([]);
    });

    it("rolls back past a dropped batch, and indexes the batch again with its events", async () => {
      expect(await store.dropEvents(group, [batch])).toEqual([batch]);
      await store.rollBack(group, { number: 2, hash: history[1]?.hash ?? hashOf(0) });
      await store.applyBlocks(group, copyOf(history.slice(2)));
      expect(await store.readBatches(group, everything)).toEqual(history.flatMap(({ batches }) => batches));
    });

    it.each<readonly [string, readonly IndexedBlock[]]>([
      ["ends before it", []],
      ["has another one", [{ ...blockOf(4), hash: hashOf(99) }]],
      ["has none of that number, since the other one has no entries", [{ ...blockOf(5), hash: hashOf(99) }]],
      ["has another one with the same batch", [{ ...(history[2] ?? blockOf(4)), hash: hashOf(99) }]],
    ])("repairs no batch of a block that a rollback has removed, so that the index %s", async (_, others) => {
      await store.rollBack(group, { number: 2, hash: history[1]?.hash ?? hashOf(0) });
      await store.applyBlocks(group, copyOf(others));
      const before = await store.readBatches(group, everything);
      await expect(store.repairBatches(group, history[2] ?? blockOf(4))).rejects.toThrow("another block 4");
      expect(await store.readBatches(group, everything)).toEqual(before);
    });

    it("repairs nothing if nothing is damaged", async () => {
      for (const one of history) expect(await store.repairBatches(group, one)).toEqual([]);
    });
  });
}

/** Copies blocks with their events, since a store in memory keeps the objects that it is given. */
function copyOf(blocks: typeof history): typeof history {
  return blocks.map((block) => ({
    ...block,
    batches: block.batches.map((batch) => ({ ...batch, events: Uint8Array.from(batch.events) })),
  }));
}
