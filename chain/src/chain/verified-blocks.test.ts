import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, it } from "vitest";
import { ChainDatabase } from "../storage/chain-database.ts";
import { SCHEMA } from "../storage/schema.ts";
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

it("distinguishes a temporarily unreadable file from a damaged one", () => {
  const folder = mkdtempSync(join(tmpdir(), "stele-chain-"));
  const [sqlite, other] = [0, 1].map(() => new DatabaseSync(join(folder, "chain.db"), { timeout: 0 }));
  if (sqlite === undefined || other === undefined) throw new Error("there are two");
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
