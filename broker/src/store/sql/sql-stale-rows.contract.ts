import { type InsertObject, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endOfBlock, positionZero } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { type LogFields, silentLogger } from "../../lib/logger.ts";
import {
  batchOf,
  beta,
  blockOf,
  group,
  history,
  subscriptionOf,
  topicOf,
} from "../../ports/store-examples.contract.ts";
import type { IndexedBlock } from "../../ports/store.ts";
import type { IndexTable } from "./index/index-tables.ts";
import type { Schema, SqlBackend, SqlDatabase } from "./schema.ts";
import { SqlStore } from "./sql-store.ts";

const gamma = parseTopicName("gamma");
/** The history, and a topic that is opened late. */
const blocks: readonly IndexedBlock[] = [
  ...history,
  blockOf(7, { opened: [topicOf(gamma, 3)] }),
  blockOf(8, { batches: [batchOf(gamma, { block: 8, sequence: 1, count: 2 })] }),
  blockOf(9, { closed: [{ name: beta, closed: true }], batches: [batchOf(beta, { block: 9, sequence: 4, count: 1 })] }),
];
const everything = { after: positionZero, upTo: endOfBlock(9), topic: undefined, batchesMax: 99, bytesMax: 1 << 30 };
const tables = ["groups", "topics", "batches"] as const satisfies readonly IndexTable[];
const ages = blocks.slice(1).map(({ number }) => number);

type IndexRow = InsertObject<Schema, IndexTable>;

/** Tests starts with one table that is older than the others, as if the disk had lost its last writes. The checksums of its rows match. */
export function testStaleRows(name: string, create: () => Promise<SqlBackend>): void {
  describe(`${name} with a table that is older than the others`, () => {
    let store: SqlStore;
    let database: SqlDatabase;
    let warnings: (LogFields | undefined)[];
    beforeEach(async () => {
      const backend = await create();
      const open = async () => (database = await backend.open());
      warnings = [];
      const warn = (_: string, fields?: LogFields) => void warnings.push(fields);
      store = new SqlStore({ ...backend, open }, { ...silentLogger, warn });
      await store.start();
    });
    afterEach(async () => store.stop());

    const apply = async (some: readonly IndexedBlock[], isFinal: boolean) => {
      for (const block of some) await store.applyBlocks(group, [block], { isFinal });
    };
    const restart = async () => {
      await store.stop();
      await store.start();
    };
    const rowsOf = async (table: IndexTable) =>
      (await sql<IndexRow>`select * from ${sql.table(table)}`.execute(database.relaxed)).rows;
    const replace = async (table: IndexTable, rows: readonly IndexRow[]) => {
      await database.relaxed.deleteFrom(table).execute();
      if (rows.length > 0) await database.relaxed.insertInto(table).values(rows).execute();
    };
    const readAll = async () => ({
      batches: await store.readBatches(group, everything),
      topics: (await store.listTopics(group, { offset: 0, limit: 9 })).topics,
      blocks: await store.listBlocks(group, { atMost: 99 }),
      head: (await store.findHead(group))?.blockNumber,
      subscriptions: await store.listSubscriptions(),
    });
    /** Restores the table's content from before a block, starts, and applies the missing blocks. Returns what the store answered before the loss. */
    const startOn = async (table: IndexTable, { before, isFinal }: { before: number; isFinal: boolean }) => {
      await store.insertSubscription(subscriptionOf(1), 0);
      await apply(
        blocks.filter(({ number }) => number < before),
        isFinal,
      );
      const old = await rowsOf(table);
      await apply(
        blocks.filter(({ number }) => number >= before),
        isFinal,
      );
      const whole = await readAll();
      await replace(table, old);
      await restart();
      const head = (await store.findHead(group))?.blockNumber ?? -1;
      await apply(
        blocks.filter(({ number }) => number > head),
        isFinal,
      );
      return whole;
    };

    it.each(tables.flatMap((table) => ages.map((before) => [table, before] as const)))(
      "rebuilds the same index after a start with the table %s from before block %i",
      async (table, before) => {
        const whole = await startOn(table, { before, isFinal: true });
        expect(await readAll()).toEqual(whole);
        const database = expect.any(String);
        expect(warnings).toEqual([expect.objectContaining({ database, found: expect.any(String) })]);
      },
    );

    it.each(ages)("can roll back after a start with the table blocks from before block %i", async (before) => {
      const whole = await startOn("blocks", { before, isFinal: false });
      expect(await readAll()).toEqual(whole);
      expect(warnings).toMatchObject([{ table: "blocks" }]);
      await store.rollBack(group, { number: 2, hash: history[1]?.hash ?? "0x" });
      await apply(blocks.slice(2), false);
      expect(await readAll()).toEqual(whole);
    });

    it.each([
      ["a gap", blockOf(10, { batches: [batchOf(beta, { block: 10, sequence: 6, count: 1 })] }), /with sequence 5/],
      ["an unknown topic", blockOf(10, { closed: [{ name: parseTopicName("delta"), closed: true }] }), /never/],
      ["a second opening of a topic", blockOf(10, { opened: [topicOf(gamma, 3)] }), /opened twice/],
    ])("reports damage for a final block with %s, and empties the index at the next start", async (_, block, says) => {
      await apply(blocks, true);
      const applying = store.applyBlocks(group, [block], { isFinal: true });
      await expect(applying).rejects.toMatchObject({ fault: "corrupt", message: expect.stringMatching(says) });
      await restart();
      expect(warnings).toMatchObject([{ table: "groups" }]);
      expect(await store.findHead(group)).toBeUndefined();
    });

    it("refuses a block that has a gap and is not final, and keeps the index", async () => {
      await apply(blocks, false);
      const gap = blockOf(10, { batches: [batchOf(beta, { block: 10, sequence: 6, count: 1 })] });
      const refusal = { name: "UnfitBlockError", message: expect.stringMatching(/with sequence 5.*left out logs/) };
      await expect(store.applyBlocks(group, [gap])).rejects.toMatchObject(refusal);
      await restart();
      expect(warnings).toEqual([]);
      expect(await store.findHead(group)).toMatchObject({ blockNumber: 9 });
    });
  });
}
