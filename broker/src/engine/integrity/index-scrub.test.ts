import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { beforeBlock, endOfBlock, type Position } from "../../domain/position.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { IndexDamagedError } from "../../ports/store.ts";
import { IndexDamage } from "./index-damage.ts";
import { IndexScrub } from "./index-scrub.ts";

const noReads = {
  findHead: async () => ({ blockNumber: 3, hash: "0x", generation: 0 }) as never,
  findBatch: async () => undefined,
  readBatches: async () => [],
};

/** A scrub of an index with damage, or without if `damage` is left out. */
function createScrub(indexDamage: IndexDamage, damage?: string): IndexScrub {
  const readBatches = async (): Promise<never> => {
    throw new Error("not read", { cause: new IndexDamagedError(damage ?? "", [0]) });
  };
  return new IndexScrub({
    groupId: defaultGroupId,
    store: damage === undefined ? noReads : { ...noReads, readBatches },
    indexRepair: { repairedIn: () => 0 },
    indexDamage,
    metrics: noMetrics,
  });
}

it("warns of the damage that the latest scrub found, although the scrub before ended early", async () => {
  const indexDamage = new IndexDamage();
  await createScrub(indexDamage, "one batch").step();
  await createScrub(indexDamage, "another batch").step();
  expect(indexDamage.warning).toMatch(/^the index is damaged: another batch,/);
  const clean = createScrub(indexDamage);
  while (await clean.step());
  expect(indexDamage.warning).toBeUndefined();
});

it("skips a damaged first block, and reads the blocks after it", async () => {
  const reads: (readonly [after: Position, upTo: Position])[] = [];
  const indexDamage = new IndexDamage();
  const store = {
    findHead: async () => ({ blockNumber: 3, hash: "0x", generation: 0 }) as never,
    findBatch: async () => undefined,
    readBatches: async (_: unknown, { after, upTo }: { readonly after: Position; readonly upTo: Position }) => {
      reads.push([after, upTo]);
      if (after === beforeBlock(0) && upTo > after) {
        throw new Error("not read", { cause: new IndexDamagedError("a batch", [0]) });
      }
      return [];
    },
  };
  const scrub = new IndexScrub({
    groupId: defaultGroupId,
    store,
    indexRepair: { repairedIn: () => 0 },
    indexDamage,
    metrics: noMetrics,
  });
  while (await scrub.step());
  expect(reads.at(-1)).toEqual([endOfBlock(0), endOfBlock(3)]);
  expect(scrub.progress).toMatchObject({ damaged: 1 });
});
