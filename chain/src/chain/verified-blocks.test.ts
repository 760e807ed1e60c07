import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, it } from "vitest";
import { ChainDatabase } from "../storage/chain-database.ts";
import type { BlockHead } from "../blocks/block.ts";
import { SCHEMA } from "../storage/schema.ts";
import { checkBlocks } from "./check-blocks.ts";
import { BlockDamagedError, readVerifiedBlocks } from "./verified-blocks.ts";

const range = { from: 0n, to: 0n, bytesMax: 1 };

function errorOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

it("readVerifiedBlocks throws BlockDamagedError for a missing block, but not while another connection locks the file", () => {
  const folder = mkdtempSync(join(tmpdir(), "stele-chain-"));
  const [sqlite, other] = [0, 1].map(() => new DatabaseSync(join(folder, "chain.db"), { timeout: 0 }));
  if (sqlite === undefined || other === undefined) throw new Error("two databases were opened");
  try {
    sqlite.exec(SCHEMA);
    const database = new ChainDatabase(sqlite);
    expect(errorOf(() => readVerifiedBlocks(database, range))).toBeInstanceOf(BlockDamagedError);
    other.exec("BEGIN EXCLUSIVE");
    const busy = errorOf(() => readVerifiedBlocks(database, range));
    expect(busy).toMatchObject({ message: expect.stringMatching(/locked/) });
    expect(busy).not.toBeInstanceOf(BlockDamagedError);
  } finally {
    sqlite.close();
    other.close();
    rmSync(folder, { recursive: true });
  }
});

it("checkBlocks reports a block that the disk cannot read, and continues with the next", () => {
  const sqlite = new DatabaseSync(":memory:");
  try {
    sqlite.exec(SCHEMA);
    const database = new FailingDisk(sqlite);
    const { upTo, damaged } = checkBlocks(database, { from: 0n, to: 2n, bytesMax: 1 });
    expect({ upTo, damaged: damaged.map(({ number, reason }) => `${number}: ${reason}`) }).toEqual({
      upTo: 2,
      damaged: [
        "0: Block 0 of the chain cannot be read: disk I/O error.",
        "1: Block 1 of the chain cannot be read: disk I/O error.", // The check reads block 0 for the parent hash.
        "2: Block 1 of the chain is damaged: its header is missing, or is that of another block.",
      ],
    });
  } finally {
    sqlite.close();
  }
});

/** A disk with a bad sector under block 0. */
class FailingDisk extends ChainDatabase {
  override findBlockHead(number: bigint): BlockHead | undefined {
    if (number === 0n) throw new Error("disk I/O error");
    return super.findBlockHead(number);
  }
}
