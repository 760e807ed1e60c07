import { topicDigest } from "@stele/wire";
import type { Insertable, Kysely, Transaction } from "kysely";
import type { GroupId } from "../../../domain/group-id.ts";
import { lastPositionOf } from "../../../domain/event.ts";
import { blockNumberMax, endOfBlock, positionZero } from "../../../domain/position.ts";
import { type VanishedBatch, VanishedEvents } from "../../../domain/vanished-events.ts";
import type { GroupLease } from "../../../ports/coordinator.ts";
import type { BlockRef } from "../../../ports/ledger.ts";
import {
  type EventPlace,
  type IndexedBlock,
  type RollBack,
  reorganisationBlocksMax,
  vanishedBatchesMax,
} from "../../../ports/store.ts";
import { assertHasBlock, type BlockUndo, planRollBack, type RollBackPlan, type TopicImage } from "../../index-plan.ts";
import { batchPlaceColumns } from "./index-queries.ts";
import { pagesOf } from "../pages.ts";
import { rowsAtOnceMax } from "../pages-by-id.ts";
import { prepare } from "../prepared.ts";
import { cutBack } from "./cut-back.ts";
import { cutBackSessions } from "../sessions/session-detaching.ts";
import { checkRow, withChecksum } from "../row-checksums.ts";
import { fromPlaceRow } from "../rows.ts";
import { restoreRetained } from "./retained-rows.ts";
import { isIntactPlace } from "./sql-batches.ts";
import type { BlockTable, Schema, SqlDatabase, VanishedTable } from "../schema.ts";
import { dropSkipped } from "./skipped-entries.ts";
import { cutBackShares, keepShared } from "../sessions/sql-shares.ts";
import { rollbackLock } from "../subscriptions/sql-subscriptions.ts";

/** Maximum number of blocks whose undo data one statement reads: up to 100 bytes for each topic in a block. */
export const undoReadMax = 16;

/** The content of a block's column `undo`, which is JSON. */
type StoredUndo = Omit<BlockUndo, "number" | "hash" | "topicsTotal"> & { readonly topicsTotal?: number | undefined };

/** Stores undo records of blocks, and rolls blocks back. Every change runs in the given transaction. */
export class SqlRollBack {
  readonly #database: SqlDatabase;
  readonly #insertBlock;

  constructor(database: SqlDatabase) {
    this.#database = database;
    this.#insertBlock = prepare(({ group_id, number, hash, undo, checksum }: BlockTable) =>
      database.relaxed.insertInto("blocks").values({ group_id, number, hash, undo, checksum }),
    );
  }

  /** Stores the blocks just applied, and deletes the blocks before the window, except the newest block before it. */
  async keep(transaction: Transaction<Schema>, groupId: GroupId, blocks: readonly BlockUndo[]): Promise<void> {
    for (const { number, hash, topicsTotal, images, retained } of blocks) {
      const undo = JSON.stringify({ topicsTotal, images, retained } satisfies StoredUndo);
      await transaction.executeQuery(
        this.#insertBlock.bind(withChecksum("blocks", { group_id: groupId, number, hash, undo })),
      );
    }
    const windowStart = (blocks.at(-1)?.number ?? 0) - reorganisationBlocksMax;
    const rows = transaction.selectFrom("blocks").where("group_id", "=", groupId).where("number", "<", windowStart);
    const { anchor } = await rows.select(({ fn }) => fn.max("number").as("anchor")).executeTakeFirstOrThrow();
    if (anchor === null) return;
    await transaction.deleteFrom("blocks").where("group_id", "=", groupId).where("number", "<", anchor).execute();
  }

  /**
   * See `Store.listBlocks`. Returns the stored blocks, or the head if no block is stored. Does not read the undo data, which may be large, so it cannot check
   * the rows: callers compare the hashes with others.
   */
  async listBlocks(
    database: Kysely<Schema>,
    groupId: GroupId,
    page: { readonly atMost: number; readonly below?: number },
  ): Promise<readonly BlockRef[]> {
    const { atMost, below = Number.MAX_SAFE_INTEGER } = page;
    const rows = await database
      .selectFrom("blocks")
      .select(["number", "hash"])
      .where("group_id", "=", groupId)
      .where("number", "<", below)
      .orderBy("number", "desc")
      .limit(atMost)
      .execute();
    if (rows.length > 0) return rows.map(({ number, hash }) => ({ number, hash: hash as BlockRef["hash"] }));
    const head = await database.selectFrom("groups").selectAll().where("group_id", "=", groupId).executeTakeFirst();
    if (head === undefined) return [];
    const { block_number: number, block_hash: hash } = checkRow(this.#database, "groups", head);
    return number >= 0 && number < below ? [{ number, hash: hash as BlockRef["hash"] }] : []; // Unchanged since it was stored.
  }

  /** @throws Error if the index has another block of that number, or ends before it. */
  async assertHas(transaction: Transaction<Schema>, groupId: GroupId, block: IndexedBlock): Promise<void> {
    const [head] = await this.listBlocks(transaction, groupId, { atMost: 1 });
    const [kept] = await this.listBlocks(transaction, groupId, { atMost: 1, below: block.number + 1 });
    assertHasBlock(block, { head, kept });
  }

  /** @throws Error if the index cannot roll back to that block. */
  async rollBack(
    transaction: Transaction<Schema>,
    groupId: GroupId,
    { to, lease }: { readonly to: BlockRef | undefined; readonly lease: GroupLease | undefined },
  ): Promise<RollBack> {
    await this.#database.lock(transaction, rollbackLock(groupId));
    const plan = await this.#undo(transaction, groupId, to);
    const end = to === undefined ? positionZero : endOfBlock(to.number);
    const { events, eventCount, newest } = await dropBatches(transaction, groupId, to === undefined ? -1 : end);
    const topicCount = await dropTopics(transaction, groupId, plan.topicsTotal);
    for (const image of plan.images) await this.#restore(transaction, groupId, image);
    await restoreRetained(this.#database, transaction, { groupId, end: to && end, images: plan.retained });
    await this.#dropBlocks(transaction, groupId, to);
    await dropSkipped(transaction, groupId, to?.number ?? -1);
    await remember(transaction, groupId, newest);
    await cutBack(transaction, { groupId, end, vanished: events, lease }, this.#database);
    // Locks sessions before shares, as a take does.
    const refused = await cutBackSessions(transaction, { groupId, end, keeper: lease?.nodeId }, this.#database);
    await cutBackShares(transaction, { groupId, end }, this.#database);
    await keepShared(transaction, refused);
    const hints = refused.map((id) => ({ kind: "session", id }) as const);
    await this.#database.notify(transaction, hints);
    return { eventCount, topicCount };
  }

  /** Deletes the blocks after `to`, and returns how to undo their changes to topics. */
  async #undo(transaction: Transaction<Schema>, groupId: GroupId, to: BlockRef | undefined): Promise<RollBackPlan> {
    if (to === undefined) return { topicsTotal: 0, images: [], retained: [] };
    const kept = await this.listBlocks(transaction, groupId, { atMost: 1, below: to.number + 1 });
    if (kept[0]?.hash !== to.hash) throw new Error(`index: cannot roll back to block ${to.number}`);
    let plan = planRollBack([]);
    for (let after = to.number; ; ) {
      const rows = await transaction
        .selectFrom("blocks")
        .selectAll()
        .where("group_id", "=", groupId)
        .where("number", ">", after)
        .orderBy("number")
        .limit(undoReadMax)
        .execute();
      const last = rows.at(-1);
      if (last === undefined) return plan;
      plan = planRollBack([plan, ...rows.map((row) => toUndo(checkRow(this.#database, "blocks", row)))]);
      after = last.number;
      await transaction
        .deleteFrom("blocks")
        .where("group_id", "=", groupId)
        .where("number", ">", to.number)
        .where("number", "<=", after)
        .execute();
    }
  }

  async #restore(transaction: Transaction<Schema>, groupId: GroupId, image: TopicImage): Promise<void> {
    const row = await transaction
      .selectFrom("topics")
      .selectAll()
      .where("group_id", "=", groupId)
      .where("ordinal", "=", image.ordinal)
      .executeTakeFirst();
    if (row === undefined) return;
    const { sequence, blockNumber: block_number, eventCount: event_count } = image;
    const change = { sequence, block_number, closed: image.closed ? 1 : 0, event_count };
    const { checksum } = withChecksum("topics", { ...checkRow(this.#database, "topics", row), ...change });
    await transaction
      .updateTable("topics")
      .set({ ...change, checksum })
      .where("topic_id", "=", row.topic_id)
      .execute();
  }

  async #dropBlocks(transaction: Transaction<Schema>, groupId: GroupId, to: BlockRef | undefined): Promise<void> {
    const { number, hash } = to ?? { number: -1, hash: "" };
    await transaction.deleteFrom("blocks").where("group_id", "=", groupId).where("number", ">", number).execute();
    const known = await transaction.selectFrom("groups").selectAll().where("group_id", "=", groupId).executeTakeFirst();
    const newest = await transaction
      .selectFrom("batches")
      .select("ordinal")
      .where("group_id", "=", groupId)
      .orderBy("last_position", "desc")
      .limit(1)
      .executeTakeFirst();
    const generation = known === undefined ? 1 : checkRow(this.#database, "groups", known).generation + 1;
    const head = { group_id: groupId, block_number: number, block_hash: hash, generation };
    const row = withChecksum("groups", { ...head, batch_count: newest?.ordinal ?? 0 });
    await transaction
      .insertInto("groups")
      .values(row)
      .onConflict((conflict) => conflict.column("group_id").doUpdateSet(row))
      .execute();
  }
}

export async function findVanished(
  database: SqlDatabase,
  groupId: GroupId,
  place: EventPlace,
): Promise<VanishedBatch | undefined> {
  if (place.blockNumber > blockNumberMax) return undefined;
  const block = endOfBlock(place.blockNumber);
  const rows = await database.relaxed
    .selectFrom("vanished")
    .selectAll()
    .where("group_id", "=", groupId)
    .where("digest", "=", place.digest)
    .where("last_position", "<=", block)
    .where("first_position", ">", block - endOfBlock(0) - 1)
    .where("first_sequence", "<=", place.sequence)
    .orderBy("vanished_id", "desc")
    .execute();
  const batches = rows.map((row) => fromPlaceRow(checkRow(database, "vanished", row), row.topic));
  return batches.find(({ firstSequence, count }) => place.sequence < firstSequence + count);
}

function toUndo(row: BlockTable): BlockUndo {
  const { topicsTotal, images, retained } = JSON.parse(row.undo) as StoredUndo; // This file wrote it.
  return { number: row.number, hash: row.hash as BlockUndo["hash"], topicsTotal, images, retained }; // Unchanged since it was stored.
}

/** The removed events, for the counts of subscriptions, and the newest removed batches, which the store remembers. */
interface Dropped {
  readonly events: VanishedEvents;
  readonly eventCount: number;
  readonly newest: readonly VanishedBatch[];
}

/**
 * Deletes the batches after a position, in pages: a reorg may remove millions. The result leaves out batches with damaged rows. Nothing could repair them,
 * since the chain no longer has their blocks: with an error, the rollback could never succeed.
 */
async function dropBatches(transaction: Transaction<Schema>, groupId: GroupId, after: number): Promise<Dropped> {
  const events = new VanishedEvents();
  let [eventCount, newest]: [number, readonly VanishedBatch[]] = [0, []];
  for (let from = after; ; ) {
    const rows = await transaction
      .selectFrom("batches")
      .innerJoin("topics", "topics.topic_id", "batches.topic_id")
      .select([...batchPlaceColumns, "topics.name"])
      .where("batches.group_id", "=", groupId)
      .where("last_position", ">", from)
      .orderBy("last_position")
      .limit(rowsAtOnceMax)
      .execute();
    const isLast = rows.length < rowsAtOnceMax;
    const upTo = isLast ? Number.MAX_SAFE_INTEGER : (rows.at(-1)?.last_position ?? from);
    await transaction
      .deleteFrom("batches")
      .where("group_id", "=", groupId)
      .where("last_position", ">", from)
      .where("last_position", "<=", upTo)
      .execute();
    const intact = rows.filter((row) => isIntactPlace(row, row.name));
    const page = intact.map((row) => fromPlaceRow(row, row.name));
    events.add(page);
    eventCount += page.reduce((sum, { count }) => sum + count, 0);
    newest = [...newest, ...page].slice(-vanishedBatchesMax);
    if (isLast) return { events, eventCount, newest };
    from = upTo;
  }
}

/** Deletes the topics after the first `keep`, in pages. Returns their number. */
async function dropTopics(
  transaction: Transaction<Schema>,
  groupId: GroupId,
  keep: number | undefined,
): Promise<number> {
  if (keep === undefined) return 0;
  let count = 0;
  for (let after = keep; ; ) {
    const rows = await transaction
      .selectFrom("topics")
      .select("ordinal")
      .where("group_id", "=", groupId)
      .where("ordinal", ">", after)
      .orderBy("ordinal")
      .limit(rowsAtOnceMax)
      .execute();
    const last = rows.at(-1);
    if (last === undefined) return count;
    await transaction
      .deleteFrom("topics")
      .where("group_id", "=", groupId)
      .where("ordinal", ">", after)
      .where("ordinal", "<=", last.ordinal)
      .execute();
    count += rows.length;
    after = last.ordinal;
  }
}

function toVanishedRow(groupId: GroupId, batch: VanishedBatch): Insertable<VanishedTable> {
  return withChecksum("vanished", {
    group_id: groupId,
    digest: topicDigest(batch.topic),
    topic: batch.topic,
    first_sequence: batch.firstSequence,
    first_position: batch.firstPosition,
    last_position: lastPositionOf(batch),
    transaction_hash: batch.transactionHash,
    log_index: batch.logIndex,
  });
}

async function remember(
  transaction: Transaction<Schema>,
  groupId: GroupId,
  vanished: readonly VanishedBatch[],
): Promise<void> {
  const rows = vanished.map((batch) => toVanishedRow(groupId, batch));
  for (const page of pagesOf(rows)) await transaction.insertInto("vanished").values(page).execute();
  const { newest } = await transaction
    .selectFrom("vanished")
    .select(({ fn }) => fn.max("vanished_id").as("newest"))
    .executeTakeFirstOrThrow();
  if (newest === null) return;
  await transaction
    .deleteFrom("vanished")
    .where("vanished_id", "<=", newest - vanishedBatchesMax)
    .execute();
}
