import { BrokerError } from "@stele/wire";
import { describe, expect, test } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { EventBatch } from "../../domain/event.ts";
import { checksumOfBytes } from "../../lib/bytes-checksum.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import type { BlockState } from "../../ports/chain-check.ts";
import type { BatchPlace, CommittedBatch, Ledger } from "../../ports/ledger.ts";
import { alpha, batchOf } from "../../ports/store-examples.contract.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { ChainCopies } from "./chain-copies.ts";

const mebibyte = 2 ** 20;

test("fills in a recently read batch, even if others push it out of memory while the chain is read", async () => {
  const clock = new VirtualClock();
  const ledger = createMemoryLedger({ groupId: defaultGroupId, chain: new MemoryChain({ clock }), isFinal: true });
  const batches = Array.from({ length: 12 }, (_, block) =>
    batchOf(alpha, { block, sequence: block + 1, count: 1, events: new Uint8Array(mebibyte).fill(block) }),
  );
  const held = createDeferred<void>();
  const asked: number[] = [];
  ledger.readCommitted = async (places: readonly BatchPlace[]) => {
    asked.push(...places.map(({ blockNumber }) => blockNumber));
    if (places.some(({ blockNumber }) => blockNumber === 11)) await held.promise;
    return places.flatMap(({ blockNumber }) => {
      const batch = batches[blockNumber];
      return batch === undefined ? [] : [{ ...batch, kind: "events-committed" as const, address: batch.publisher }];
    });
  };
  const copies = new ChainCopies({ ledgers: [ledger], clock });
  const fill = (...numbers: readonly number[]) =>
    copies.readDropped(
      defaultGroupId,
      batches.filter(({ blockNumber }) => numbers.includes(blockNumber)).map(dropped),
      "feed",
    );

  expect(checksumsOf(await fill(0))).toEqual(checksumsOf(batches.slice(0, 1)));
  const both = fill(0, 11);
  for (let block = 1; block <= 10; block += 1) await fill(block);
  held.resolve();
  expect(checksumsOf(await both)).toEqual(checksumsOf(batches.filter((_, block) => block === 0 || block === 11)));
  expect(asked).toEqual([0, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

/** Copies over a chain that answers reads with `answer`. */
function copiesOver(answer: Ledger["readCommitted"], inspectBlock?: (block: number) => Promise<BlockState>) {
  const clock = new VirtualClock();
  const ledger = createMemoryLedger({ groupId: defaultGroupId, chain: new MemoryChain({ clock }), isFinal: true });
  ledger.readCommitted = answer;
  const inspect = inspectBlock && ((_: unknown, block: number) => inspectBlock(block));
  return { copies: new ChainCopies({ ledgers: [ledger], clock, ...(inspect && { inspectBlock: inspect }) }), clock };
}

function smallBatches(count: number): readonly EventBatch[] {
  return Array.from({ length: count }, (_, block) =>
    batchOf(alpha, { block, sequence: block + 1, count: 1, events: new Uint8Array(8).fill(block) }),
  );
}

const toCommitted = (batch: EventBatch): CommittedBatch => ({
  ...batch,
  kind: "events-committed",
  address: batch.publisher,
});
const hasPlace = (places: readonly BatchPlace[], block: number): boolean =>
  places.some(({ blockNumber }) => blockNumber === block);

describe("if the chain does not give a batch", () => {
  const batches = smallBatches(6);
  /** A chain that fails from a block on. */
  const failingFrom = (block: number): Ledger["readCommitted"] =>
    async function (places) {
      const given = places.filter(({ blockNumber }) => blockNumber < block);
      if (given.length === 0) throw new BrokerError("chainUnreachable", { details: "it is damaged" });
      return batches.filter(({ blockNumber }) => hasPlace(given, blockNumber)).map(toCommitted);
    };

  test("the batches before it are filled in, and a read that begins with it is refused", async () => {
    const { copies } = copiesOver(failingFrom(3));
    const wanted = batches.map(dropped);
    expect(await copies.readDropped(defaultGroupId, wanted, "feed")).toEqual(batches.slice(0, 3));
    const refused = { code: 200205, message: expect.stringContaining("only the chain has the events of block 3") };
    await expect(copies.readDropped(defaultGroupId, wanted.slice(3), "feed")).rejects.toMatchObject(refused);
    const unaborted = new AbortController().signal;
    expect(await copies.compare(defaultGroupId, batches, unaborted)).toEqual(batches.slice(0, 3));
    const compared = copies.compare(defaultGroupId, batches.slice(3), unaborted);
    const message = expect.stringContaining("must give the events of block 3 before the store drops them");
    await expect(compared).rejects.toMatchObject({ code: 200205, message });
  });

  test("a read of a damaged block is refused with 200208 if the block stays damaged, and succeeds if it is repaired", async () => {
    let state: BlockState = "damaged";
    const inspected: number[] = [];
    let answer = failingFrom(3);
    const { copies } = copiesOver(
      (...call) => answer(...call),
      async (block) => {
        inspected.push(block);
        if (state === "repaired") answer = failingFrom(9);
        return state;
      },
    );
    const wanted = batches.slice(3).map(dropped);
    await expect(copies.readDropped(defaultGroupId, wanted, "call")).rejects.toMatchObject({ code: 200208 });
    state = "repaired";
    expect(await copies.readDropped(defaultGroupId, wanted, "call")).toEqual(batches.slice(3));
    expect(inspected).toEqual([3, 3]);
  });

  test("a read of an intact block that lacks the batch is refused with 200209", async () => {
    const { copies } = copiesOver(
      async () => [],
      async () => "intact",
    );
    const refused = copies.readDropped(defaultGroupId, batches.map(dropped), "call");
    await expect(refused).rejects.toMatchObject({ code: 200209 });
  });

  test("a read of a slow chain returns the batches that came in time, and the next read continues after them", async () => {
    const { copies, clock } = copiesOver(
      (places, signal) =>
        new Promise((resolve) => {
          const given = batches.filter(({ blockNumber }) => hasPlace(places.slice(0, 2), blockNumber));
          signal.addEventListener("abort", () => resolve(given.map(toCommitted)));
        }),
    );
    const given: EventBatch[] = [];
    for (let reads = 0; reads < 3; reads += 1) {
      const page = copies.readDropped(defaultGroupId, batches.slice(given.length).map(dropped), "feed");
      await clock.advance(30_000);
      given.push(...(await page));
    }
    expect(given).toEqual(batches);
  });
});

function checksumsOf(batches: readonly EventBatch[]): readonly number[] {
  return batches.map(({ events }) => checksumOfBytes(events));
}

function dropped(batch: EventBatch): EventBatch {
  const { events } = batch;
  const known = { byteCount: events.byteLength, checksum: checksumOfBytes(events) };
  return { ...batch, events: new Uint8Array(0), dropped: known };
}
