import { copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { inspectLog } from "./write-ahead-log.ts";

const frameBytes = 4096 + 24;
const headerBytes = 32;

let folder: string;
/** A database under test. */
let file: string;
let trials = 0;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-log-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  trials += 1;
  file = join(folder, `${trials}.sqlite`);
});

/** A database with a log of transactions of one to three pages, as a process leaves it that is killed. */
function leave({ isRestarted = false } = {}): Buffer {
  const source = join(folder, `source-${trials}.sqlite`);
  const database = new DatabaseSync(source);
  database.exec("pragma journal_mode = wal; pragma wal_autocheckpoint = 0; create table t (a blob)");
  for (let row = 0; row < 12; row += 1) database.exec(`insert into t values (randomblob(${1500 + 4000 * (row % 3)}))`);
  if (isRestarted) {
    database.exec("pragma wal_checkpoint(restart)");
    database.exec("insert into t values (randomblob(9000))");
    database.exec("insert into t values (randomblob(9000))");
  }
  for (const end of ["", "-wal", "-shm"]) copyFileSync(source + end, file + end);
  database.close();
  return readFileSync(`${file}-wal`);
}

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 4;
  return copy;
}

test("no log, an empty one, and one that is whole hold no damage", () => {
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: undefined });
  writeFileSync(`${file}-wal`, "");
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: undefined });
  const bytes = leave();
  expect(inspectLog(file)).toEqual({ whole: (bytes.length - headerBytes) / frameBytes, damagedAt: undefined });
});

test("what is left of the log before is no damage", () => {
  const bytes = leave({ isRestarted: true });
  const { whole, damagedAt } = inspectLog(file);
  expect(damagedAt).toBeUndefined();
  expect(whole).toBeGreaterThan(1);
  expect(whole).toBeLessThan((bytes.length - headerBytes) / frameBytes);
});

test("a flipped bit anywhere is found while the index of the log is there", () => {
  const bytes = leave();
  for (let at = 0; at < bytes.length; at += 997) {
    writeFileSync(`${file}-wal`, flipped(bytes, at));
    const frame = Math.floor((at - headerBytes) / frameBytes);
    expect(inspectLog(file).damagedAt).toBe(at < headerBytes ? 0 : headerBytes + frame * frameBytes);
  }
});

test("without it a flipped bit is found, and so are zeros, where more was committed behind; a torn end is none", () => {
  const bytes = leave();
  rmSync(`${file}-shm`);
  const frames = (bytes.length - headerBytes) / frameBytes;
  const last = Array.from({ length: frames }, (_, frame) => frame).findLast(
    (frame) => frame < frames - 1 && bytes.readUInt32BE(headerBytes + frame * frameBytes + 4) > 0,
  );
  const end = headerBytes + ((last ?? 0) + 1) * frameBytes;
  for (let at = headerBytes + 24; at < bytes.length; at += frameBytes) {
    writeFileSync(`${file}-wal`, flipped(bytes, at));
    expect(inspectLog(file).damagedAt).toBe(at < end ? at - 24 : undefined);
  }
  writeFileSync(`${file}-wal`, Buffer.from(bytes).fill(0, headerBytes + frameBytes, headerBytes + 4 * frameBytes));
  expect(inspectLog(file)).toEqual({ whole: 1, damagedAt: headerBytes + frameBytes });
  writeFileSync(`${file}-wal`, bytes);
  truncateSync(`${file}-wal`, bytes.length - 100);
  expect(inspectLog(file).damagedAt).toBeUndefined();
});

test("a log that was cut is found while its index is there, and not once SQLite has made that anew", () => {
  leave();
  truncateSync(`${file}-wal`, headerBytes + 5 * frameBytes);
  expect(inspectLog(file)).toEqual({ whole: 5, damagedAt: headerBytes + 5 * frameBytes });
  rmSync(`${file}-shm`);
  expect(inspectLog(file)).toEqual({ whole: 5, damagedAt: undefined });
});
