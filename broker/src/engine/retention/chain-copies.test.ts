import { expect, test } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { EventBatch } from "../../domain/event.ts";
import { checksumOfBytes } from "../../lib/bytes-checksum.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import type { BatchPlace } from "../../ports/ledger.ts";
import { alpha, batchOf } from "../../ports/store-examples.contract.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { ChainCopies } from "./chain-copies.ts";

const mebibyte = 2 ** 20;

test("a batch that was read lately is filled in, also if others push it out of memory while the chain is read", async () => {
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
    copies.fill(defaultGroupId, batches.filter(({ blockNumber }) => numbers.includes(blockNumber)).map(dropped));

  expect(checksumsOf(await fill(0))).toEqual(checksumsOf(batches.slice(0, 1)));
  const both = fill(0, 11);
  for (let block = 1; block <= 10; block += 1) await fill(block);
  held.resolve();
  expect(checksumsOf(await both)).toEqual(checksumsOf(batches.filter((_, block) => block === 0 || block === 11)));
  expect(asked).toEqual([0, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

function checksumsOf(batches: readonly EventBatch[]): readonly number[] {
  return batches.map(({ events }) => checksumOfBytes(events));
}

function dropped(batch: EventBatch): EventBatch {
  const { events } = batch;
  const known = { byteCount: events.byteLength, checksum: checksumOfBytes(events) };
  return { ...batch, events: new Uint8Array(0), dropped: known };
}
