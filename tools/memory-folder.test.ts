import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { useMemoryFolder } from "./memory-folder.mjs";

let memory: string;
beforeEach(() => {
  memory = mkdtempSync(join(tmpdir(), "stele-memory-"));
});
afterEach(() => rmSync(memory, { recursive: true, force: true }));

it("names a new folder for everybody in TMPDIR", () => {
  const environment: NodeJS.ProcessEnv = {};
  const folder = useMemoryFolder({ memory, environment, bytesMin: 1 }) ?? "";
  expect(environment["TMPDIR"]).toBe(folder);
  expect(readdirSync(memory)).toEqual([folder.slice(memory.length + 1)]);
  expect(statSync(folder).mode & 0o7777).toBe(0o1777);
  expect(readdirSync(folder)).toEqual([]);
});

it.each([
  ["if TMPDIR is set", { environment: { TMPDIR: "/elsewhere" }, bytesMin: 1 }],
  ["without room", { environment: {}, bytesMin: Number.MAX_SAFE_INTEGER }],
  ["without such a folder", { environment: {}, bytesMin: 1, memory: "/none/such" }],
])("changes nothing %s", (_when, options) => {
  const before = { ...options.environment };
  expect(useMemoryFolder({ memory, ...options })).toBeUndefined();
  expect(options.environment).toEqual(before);
  expect(readdirSync(memory)).toEqual([]);
});
