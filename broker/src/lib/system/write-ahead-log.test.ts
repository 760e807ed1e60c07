import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { inspectLog } from "./write-ahead-log.ts";
import { checksum, headerBefore, headerBytes, type Sum } from "./write-ahead-log-header.ts";

const frameBytes = 4096 + 24;

let folder: string;
/** A database under test. */
let file: string;
let tests = 0;
let sources = 0;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-log-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  tests += 1;
  file = join(folder, `${tests}.sqlite`);
});

/** A new database with a log of transactions of one to six pages. */
function fill(rows: number): { readonly database: DatabaseSyncInstance; readonly source: string } {
  sources += 1;
  const source = join(folder, `source-${sources}.sqlite`);
  const database = new DatabaseSync(source);
  database.exec("pragma journal_mode = wal; pragma wal_autocheckpoint = 0; create table t (a blob)");
  insert(database, rows);
  return { database, source };
}

function insert(database: DatabaseSyncInstance, rows: number): void {
  for (let row = 0; row < rows; row += 1)
    database.exec(`insert into t values (randomblob(${1500 + 4000 * (row % 3)}))`);
}

/** Copies a database and its log to the files under test, as a killed process leaves them. Returns the log. */
function copyFrom(source: string): Buffer {
  for (const end of ["", "-wal", "-shm"]) copyFileSync(source + end, file + end);
  return readFileSync(`${file}-wal`);
}

function leave({ isRestarted = false } = {}): Buffer {
  const { database, source } = fill(12);
  if (isRestarted) {
    database.exec("pragma wal_checkpoint(restart)");
    insert(database, 2);
  }
  const log = copyFrom(source);
  database.close();
  return log;
}

/** Leaves a log after a checkpoint that copied all transactions but the last `after` into the database. An open reader kept SQLite from restarting the log. */
function leaveCopied({ after = 0 } = {}): Buffer {
  const { database, source } = fill(12);
  const reader = new DatabaseSync(source);
  reader.exec("begin; select count(*) from t");
  database.exec("pragma wal_checkpoint(passive)");
  insert(database, after);
  const log = copyFrom(source);
  reader.close();
  database.close();
  return log;
}

/** Leaves a log like `bytes`, except that its header is zeros, as a disk leaves a sector that it was writing. */
function leaveWithoutHeader(bytes: Buffer): void {
  writeFileSync(`${file}-wal`, Buffer.from(bytes).fill(0, 0, headerBytes));
}

/** The number of rows that SQLite finds in the database and its log. */
function countRows(): unknown {
  const database = new DatabaseSync(file);
  const row = database.prepare("select count(*) as rows from t").get();
  database.close();
  return row;
}

function frameOf(log: Buffer, index: number): Buffer {
  return log.subarray(headerBytes + index * frameBytes, headerBytes + (index + 1) * frameBytes);
}

/** The same log as a big-endian machine writes it. */
function toBigEndian(log: Buffer): Buffer {
  const copy = Buffer.from(log);
  copy.writeUInt32BE(0x377f0683, 0);
  const write = ([one, two]: Sum, at: number): void => void copy.writeUInt32BE(two, copy.writeUInt32BE(one, at));
  let sum = checksum(copy.subarray(0, 24), [0, 0], true);
  write(sum, 24);
  for (let at = headerBytes; at < copy.length; at += frameBytes) {
    sum = checksum(copy.subarray(at + 24, at + frameBytes), checksum(copy.subarray(at, at + 8), sum, true), true);
    write(sum, at + 16);
  }
  return copy;
}

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 4;
  return copy;
}

test("names a log that cannot be read", () => {
  writeFileSync(file, "");
  mkdirSync(`${file}-wal`);
  for (let index = 0; index < 100; index += 1) writeFileSync(join(`${file}-wal`, `${index}`), ""); // A folder longer than the header of a log.
  expect(() => inspectLog(file)).toThrow(`${file}-wal cannot be read: EISDIR`);
});

test("names the log's index, which can be deleted, if that cannot be read", () => {
  leave();
  rmSync(`${file}-shm`);
  mkdirSync(`${file}-shm`);
  expect(() => inspectLog(file)).toThrow(new RegExp(`^${file}-shm cannot be read: EISDIR`));
});

test("names the database if it cannot be read, not its log", () => {
  leaveWithoutHeader(leave());
  rmSync(file);
  mkdirSync(file);
  expect(() => inspectLog(file)).toThrow(new RegExp(`^${file} cannot be read: EISDIR`));
});

test("finds no damage in a missing, an empty and an intact log", () => {
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: undefined });
  writeFileSync(`${file}-wal`, "");
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: undefined });
  const bytes = leave();
  expect(inspectLog(file)).toEqual({ whole: (bytes.length - headerBytes) / frameBytes, damagedAt: undefined });
});

test("frames that an earlier log left after the end are not damage", () => {
  const bytes = leave({ isRestarted: true });
  const { whole, damagedAt } = inspectLog(file);
  expect(damagedAt).toBeUndefined();
  expect(whole).toBeGreaterThan(1);
  expect(whole).toBeLessThan((bytes.length - headerBytes) / frameBytes);
});

test("finds a flipped bit anywhere while the index of the log exists", () => {
  const bytes = leave();
  for (let at = 0; at < bytes.length; at += 997) {
    writeFileSync(`${file}-wal`, flipped(bytes, at));
    const frame = Math.floor((at - headerBytes) / frameBytes);
    expect(inspectLog(file).damagedAt).toBe(at < headerBytes ? 0 : headerBytes + frame * frameBytes);
  }
});

test("without the index of the log, finds a flipped bit or zeros only if a later transaction follows; a torn end is not damage", () => {
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

test("finds that a log is truncated only if the index of the log exists", () => {
  leave();
  truncateSync(`${file}-wal`, headerBytes + 5 * frameBytes);
  expect(inspectLog(file)).toEqual({ whole: 5, damagedAt: headerBytes + 5 * frameBytes });
  rmSync(`${file}-shm`);
  expect(inspectLog(file)).toEqual({ whole: 5, damagedAt: undefined });
});

test("a lost header is not damage once a checkpoint has copied the log, and SQLite then reads every row", () => {
  leaveWithoutHeader(leaveCopied());
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: undefined });
  rmSync(`${file}-shm`);
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: undefined });
  expect(countRows()).toEqual({ rows: 12 });
});

test("a lost header is not damage if frames of older logs follow the end of a copied log", () => {
  const { database, source } = fill(20);
  for (const rows of [10, 3]) {
    database.exec("pragma wal_checkpoint(restart)");
    insert(database, rows);
  }
  database.exec("pragma wal_checkpoint(passive)");
  leaveWithoutHeader(copyFrom(source));
  database.close();
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: undefined });
  expect(countRows()).toEqual({ rows: 33 });
});

test.each([{ after: 1 }, { after: 3 }])(
  "a lost header is damage if $after transactions are not copied, and SQLite would lose them",
  ({ after }) => {
    const bytes = leaveCopied({ after });
    leaveWithoutHeader(bytes);
    expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: 0 });
    rmSync(`${file}-shm`);
    expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: 0 });
    expect(countRows()).toEqual({ rows: 12 });
  },
);

test.each([
  { leaves: "a log that was not copied", found: "damage", log: leave, damagedAt: 0 },
  { leaves: "a log that was copied", found: "no damage", log: leaveCopied, damagedAt: undefined },
])("a flipped bit in any byte of the header of $leaves is $found", ({ log, damagedAt }) => {
  const bytes = log();
  rmSync(`${file}-shm`);
  for (let at = 0; at < headerBytes; at += 1) {
    writeFileSync(`${file}-wal`, flipped(bytes, at));
    expect(inspectLog(file)).toEqual({ whole: 0, damagedAt });
  }
});

test("a lost header is damage if a page of the database, or a frame before the last commit, has changed since the copy", () => {
  const bytes = leaveCopied();
  const frames = (bytes.length - headerBytes) / frameBytes;
  const database = readFileSync(file);
  for (let frame = 0; frame < frames; frame += 1) {
    leaveWithoutHeader(flipped(bytes, headerBytes + frame * frameBytes + 24 + 17 * frame));
    expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: 0 });
  }
  leaveWithoutHeader(bytes);
  for (let at = 4096 + 1; at < database.length; at += 4096) {
    writeFileSync(file, flipped(database, at));
    expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: 0 });
  }
  rmSync(file);
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: 0 });
});

test("a lost header is damage if a frame that is not copied is damaged, although the frames before it are copied", () => {
  const copied = (leaveCopied().length - headerBytes) / frameBytes;
  const bytes = leaveCopied({ after: 3 });
  rmSync(`${file}-shm`);
  leaveWithoutHeader(flipped(bytes, headerBytes + copied * frameBytes + 24));
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: 0 });
});

test("a lost header is damage if the salts of the first frame are lost too, although that frame is a whole transaction and is copied", () => {
  const { database, source } = fill(1);
  database.exec("pragma wal_checkpoint(restart); insert into t values (x'01')");
  const reader = new DatabaseSync(source);
  reader.exec("begin; select count(*) from t");
  database.exec("pragma wal_checkpoint(passive)");
  insert(database, 3);
  const bytes = copyFrom(source);
  reader.close();
  database.close();
  rmSync(`${file}-shm`);
  expect(frameOf(bytes, 0).readUInt32BE(4)).toBeGreaterThan(0);
  leaveWithoutHeader(bytes.fill(0xa5, headerBytes + 8, headerBytes + 16));
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: 0 });
});

test("a lost header is not damage if a copied log has made the database shorter", () => {
  const { database, source } = fill(12);
  database.exec("delete from t; vacuum; pragma wal_checkpoint(passive)");
  leaveWithoutHeader(copyFrom(source));
  database.close();
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: undefined });
});

test("a lost header is not damage if a transaction that never ended follows the copied ones", () => {
  const { database, source } = fill(12);
  const reader = new DatabaseSync(source);
  reader.exec("begin; select count(*) from t");
  database.exec("pragma wal_checkpoint(passive); pragma cache_size = 1; begin");
  const before = copyFrom(source).length;
  database.exec("update t set a = zeroblob(9000)");
  const bytes = copyFrom(source);
  reader.close();
  database.close();
  expect(bytes.length).toBeGreaterThan(before);
  leaveWithoutHeader(bytes);
  expect(inspectLog(file)).toEqual({ whole: 0, damagedAt: undefined });
});

test("headerBefore computes the header from the first frame, in either byte order and after a restart of the log", () => {
  for (const log of [leave(), leave({ isRestarted: true })]) {
    expect(headerBefore(frameOf(log, 0))).toEqual(log.subarray(0, headerBytes));
    const big = toBigEndian(log);
    expect(headerBefore(frameOf(big, 0))).toEqual(big.subarray(0, headerBytes));
    expect(headerBefore(flipped(frameOf(log, 0), 9))).toBeUndefined();
    expect(headerBefore(frameOf(log, 0).subarray(0, 2000))).toBeUndefined();
  }
});
