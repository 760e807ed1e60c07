import { errorCatalogue } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

async function listGroups(options: TestEngineOptions = {}) {
  engine = await TestEngine.start(options);
  return engine.broker.operator.listGroups(testCaller, { after: undefined, limit: 10 });
}

/** Stores two skipped entries in each of the blocks 1 to 3: 1-0, 1-1, 2-0, and so on. */
async function skipEntries(): Promise<void> {
  engine = new TestEngine();
  for (const number of [0, 1, 2, 3]) {
    const entry = (logIndex: number) => ({
      code: "wrong-root" as const,
      reason: "root 0x01 where 0x02 was claimed",
      address: "0x00000000000000000000000000000000000000aa" as const,
      blockNumber: number,
      transactionHash: "0x01" as const,
      logIndex,
    });
    const skippedEntries = number === 0 ? [] : [entry(0), entry(1)];
    const block = {
      number,
      hash: `0x0${number}`,
      opened: [],
      closed: [],
      batches: [],
      skippedSequences: [],
      skippedEntries,
    } as const;
    await engine.store.applyBlocks(defaultGroupId, [block]);
  }
}

async function skipped(after: string | undefined, limit: number) {
  const { operator } = engine.broker;
  const { items, next } = await operator.listSkippedEntries(testCaller, "1", { after, limit });
  return { places: items.map(({ blockNumber, logIndex }) => `${blockNumber}-${logIndex}`), next };
}

const newestFirst = ["3-1", "3-0", "2-1", "2-0", "1-1", "1-0"];

it.each<[string, TestEngineOptions, string | number]>([
  ["every block", {}, "latest"],
  ["those with two blocks on top", { confirmations: 2 }, 2],
])("shows which blocks are final: %s", async (_, options, finality) => {
  expect((await listGroups(options)).items).toMatchObject([
    { groupId: "1", ledgerInfo: { finality, account: undefined } },
  ]);
});

it("ends the list after the last group, and refuses a page cursor that names no group", async () => {
  expect((await listGroups()).next).toBeUndefined();
  const { operator } = engine.broker;
  expect((await operator.listGroups(testCaller, { after: "1", limit: 1 })).items).toEqual([]);
  const { code } = errorCatalogue.parameterInvalid;
  await expect(operator.listGroups(testCaller, { after: "9", limit: 1 })).rejects.toMatchObject({ code });
});

it.each([1, 2, 3, 4, 6, 7])("lists skipped entries newest first, in pages of %i", async (limit) => {
  await skipEntries();
  const seen: string[] = [];
  for (let after: string | undefined, isMore = true; isMore; isMore = after !== undefined) {
    const { places, next } = await skipped(after, limit);
    expect(places.length).toBeLessThanOrEqual(limit);
    seen.push(...places);
    after = next;
  }
  expect(seen).toEqual(newestFirst);
});

it("lists the skipped entries below a cursor, whether or not an entry is at the cursor, and refuses a malformed cursor", async () => {
  await skipEntries();
  const { next } = await skipped(undefined, 2);
  expect(await skipped("9-9", 2)).toEqual({ places: ["3-1", "3-0"], next });
  expect(await skipped("2-1", 1)).toEqual({ places: ["2-0"], next: "2-0" });
  expect(await skipped("1-0", 1)).toEqual({ places: [], next: undefined });
  await expect(skipped("zzz", 1)).rejects.toMatchObject({ code: errorCatalogue.parameterInvalid.code });
});
