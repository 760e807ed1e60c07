import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  closeSync,
  constants,
  mkdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { silentLogger } from "../lib/logger.ts";
import { createSystemClock } from "../lib/system/clock.ts";
import { StandardOutput } from "../lib/system/standard-output.ts";
import { VirtualClock } from "../ports/testing/virtual-clock.ts";
import { FileAuditLog, formatAuditLine, OutputAuditLog } from "./audit-log.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "audit-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const line = { time: 0, action: "open", outcome: "done", topic: "a" } as const;
const text = '{"time":"1970-01-01T00:00:00.000Z","action":"open","outcome":"done","topic":"a"}\n';
const linesOf = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n");

async function start(path: string, clock = createSystemClock()): Promise<FileAuditLog> {
  const log = new FileAuditLog(path, { clock, logger: silentLogger });
  await log.start();
  return log;
}

/** Reads what a pipe holds now. */
function readAll(reader: number): string {
  const buffer = Buffer.alloc(2 ** 20);
  let read = "";
  try {
    for (let count = 1; count > 0; ) {
      count = readSync(reader, buffer);
      read += buffer.toString("utf8", 0, count);
    }
  } catch {
    // The pipe is empty for now.
  }
  return read;
}

it("appends one JSON object per line to a file that only its owner may read", async () => {
  const path = join(folder, "audit.log");
  for (let round = 0; round < 2; round += 1) {
    const log = await start(path);
    for (let index = 0; index < 1_000; index += 1) log.write(line);
    await log.stop(10_000);
  }
  expect(readFileSync(path, "utf8")).toBe(text.repeat(2_000));
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it("begins a new line in a file that ends within a line, for example after a full disk", async () => {
  const path = join(folder, "audit.log");
  writeFileSync(path, text + text.slice(0, 20));
  const log = await start(path);
  log.write(line);
  await log.stop(10_000);
  expect(readFileSync(path, "utf8")).toBe(`${text}${text.slice(0, 20)}\n${text}`);
});

it("begins a new line after a part of one that a command leaves while the broker runs", async () => {
  const path = join(folder, "audit.log");
  const log = await start(path);
  log.write(line);
  await vi.waitFor(() => expect(readFileSync(path, "utf8")).toBe(text));
  for (const left of [text.slice(0, 20), text]) {
    const before = readFileSync(path, "utf8") + left;
    appendFileSync(path, left);
    log.write(line);
    const expected = `${before}${left === text ? "" : "\n"}${text}`;
    await vi.waitFor(() => expect(readFileSync(path, "utf8")).toBe(expected));
  }
  await log.stop(10_000);
});

it("begins a new file after the old one was moved away", async () => {
  const path = join(folder, "audit.log");
  const log = await start(path);
  log.write(line);
  await log.stop(10_000);
  await log.start();
  renameSync(path, `${path}.1`);
  log.write({ ...line, topic: "b" });
  await log.stop(10_000);
  expect([linesOf(`${path}.1`).length, linesOf(path).length]).toEqual([1, 1]);
  expect(readFileSync(path, "utf8")).toContain('"b"');
});

it("does not open a symbolic link, and leaves its target unchanged", async () => {
  const [target, path] = [join(folder, "target"), join(folder, "audit.log")];
  writeFileSync(target, "kept");
  symlinkSync(target, path);
  await expect(start(path)).rejects.toThrow(`The audit log ${path} cannot be opened: ELOOP`);
  expect(readFileSync(target, "utf8")).toBe("kept");
});

it("does not start if the path is a folder", async () => {
  await expect(start(folder)).rejects.toThrow(`The audit log ${folder} cannot be opened: `);
});

it("drops lines beyond 1 MiB while the file cannot be written, reports that, and later logs their number", async () => {
  const clock = new VirtualClock();
  const path = join(folder, "gone", "audit.log");
  mkdirSync(join(folder, "gone"));
  const log = new FileAuditLog(path, { clock, logger: silentLogger });
  await log.start();
  expect(log.findTrouble()).toBeUndefined();
  renameSync(join(folder, "gone"), join(folder, "away"));
  const given = Math.ceil(2 ** 20 / text.length) + 500;
  for (let index = 0; index < given; index += 1) log.write(line);
  const isSettled = async (): Promise<boolean> => {
    await clock.settle();
    return log.findTrouble() !== undefined;
  };
  await expect.poll(isSettled).toBe(true);
  expect(log.findTrouble()).toMatch(/^the audit log cannot be written: ENOENT.*; \d+ lines were dropped$/);
  mkdirSync(join(folder, "gone"));
  await clock.advance(1_000);
  await expect.poll(() => log.findTrouble()).toBeUndefined();
  await log.stop(10_000);
  const lines = linesOf(path).map((one) => JSON.parse(one) as { outcome: string; count?: number });
  const last = lines.at(-1);
  expect(last).toMatchObject({ outcome: "left out" });
  expect(lines.length - 1 + (last?.count ?? 0)).toBe(given);
});

it("logs at the stop how many lines it could not write", async () => {
  const clock = new VirtualClock();
  const path = join(folder, "gone", "audit.log");
  mkdirSync(join(folder, "gone"));
  const logged: unknown[] = [];
  const error = (message: string, fields?: unknown): void => void logged.push([message, fields]);
  const log = new FileAuditLog(path, { clock, logger: { ...silentLogger, error } });
  await log.start();
  renameSync(join(folder, "gone"), join(folder, "away"));
  const given = Math.ceil(2 ** 20 / text.length) + 500;
  for (let index = 0; index < given; index += 1) log.write(line);
  const stopped = log.stop(1_500);
  await expect.poll(() => log.findTrouble()).toMatch(/ENOENT/);
  await clock.advance(1_500);
  await stopped;
  expect(logged).toEqual([["audit lines lost at the stop", { auditLog: path, lines: given }]]);
});

it("logs at the stop how many lines it could not write, including lines whose number stands in an unwritten line", async () => {
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const clock = new VirtualClock();
  const logged: unknown[] = [];
  const error = (_message: string, fields?: unknown): void => void logged.push(fields);
  const log = new FileAuditLog(path, { clock, logger: { ...silentLogger, error } });
  await log.start();
  const given = Math.ceil(2 ** 20 / text.length) + 5_000;
  for (let index = 0; index < given; index += 1) log.write(line);
  await expect.poll(() => log.findTrouble()).toMatch(/nobody reads the pipe; \d{4,} lines were dropped$/);
  let read = readAll(reader);
  const isGoingOn = async (): Promise<boolean> => {
    await clock.advance(1_000);
    const more = readAll(reader);
    read += more;
    return more !== "";
  };
  await expect.poll(isGoingOn).toBe(true);
  await expect.poll(() => log.findTrouble()).toMatch(/nobody reads the pipe; \d{4,} lines were dropped$/);
  const stopped = log.stop(1);
  await clock.advance(1);
  await stopped;
  read += readAll(reader);
  closeSync(reader);
  expect(logged).toEqual([{ auditLog: path, lines: given - (read.split("\n").length - 1) }]);
});

it("stops within graceMs while nobody reads the named pipe", async () => {
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const log = await start(path);
  for (let index = 0; index < 5_000; index += 1) log.write(line);
  await expect.poll(() => log.findTrouble()).toMatch(/nobody reads the pipe/);
  await log.stop(10);
  const buffer = Buffer.alloc(100);
  expect(buffer.toString("utf8", 0, readSync(reader, buffer))).toContain(text.slice(0, 50));
  closeSync(reader);
});

it("while nobody reads a full output, drops further lines; logs their number at a stop, or writes it once somebody reads", async () => {
  const path = join(folder, "pipe");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  const output = new StandardOutput({ descriptor: writer, monotonic: () => 0 });
  const logged: unknown[] = [];
  const error = (message: string, fields?: unknown): void => void logged.push([message, fields]);
  const log = new OutputAuditLog(output, { logger: { ...silentLogger, error } });
  const given = 30_000;
  for (let index = 0; index < given; index += 1) log.write(line);
  expect(log.findTrouble()).toMatch(
    /^the audit log cannot be written: nobody reads the standard output; \d+ lines were dropped$/,
  );
  await log.stop();
  let read = "";
  const drain = (): boolean => {
    read += readAll(reader);
    return log.findTrouble() === undefined;
  };
  await expect.poll(drain).toBe(true);
  log.write(line);
  drain();
  const lines = read
    .trimEnd()
    .split("\n")
    .map((one) => JSON.parse(one) as { outcome: string; count?: number });
  const count = lines.find(({ outcome }) => outcome === "left out")?.count ?? 0;
  expect(count).toBeGreaterThan(0);
  expect(lines.length - 2 + count).toBe(given);
  expect(logged).toEqual([["audit lines lost at the stop", { auditLog: "stdout", lines: count }]]);
  closeSync(reader);
  closeSync(writer);
});

// Root may write any file.
it.skipIf(process.getuid?.() === 0)("suggests chmod for a file that its user owns but may not write", async () => {
  const path = join(folder, "audit.log");
  closeSync(openSync(path, "w"));
  chmodSync(path, 0o400);
  await expect(start(path)).rejects.toThrow(/chmod u\+rw/);
});

it("escapes what moves a terminal's cursor or breaks its line, and stays the same JSON", () => {
  const topic = "a\u001b[2J\u009b2J\u2028b\u2029\u202e\u{e0041}ü😀";
  const escaped = formatAuditLine({ ...line, topic });
  expect(escaped.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  expect(escaped).toContain(String.raw`a\u001b[2J\u009b2J\u2028b\u2029\u202e\udb40\udc41ü😀`);
  expect(JSON.parse(escaped)).toMatchObject({ topic });
});
