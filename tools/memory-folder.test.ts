import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runsPrograms, useMemoryFolder } from "./memory-folder.mjs";

let memory: string;
beforeEach(() => {
  memory = mkdtempSync(join(tmpdir(), "stele-memory-"));
});
afterEach(() => rmSync(memory, { recursive: true, force: true }));

it("sets TMPDIR to a new folder that every user may write to", ({ skip }) => {
  skip(!runsPrograms(memory), "programs in the temporary folder may not be run");
  const environment: NodeJS.ProcessEnv = {};
  const folder = useMemoryFolder({ memory, environment, bytesMin: 1 }) ?? "";
  expect(environment["TMPDIR"]).toBe(folder);
  expect(readdirSync(memory)).toEqual([folder.slice(memory.length + 1)]);
  expect(folder).toContain(`stele-tests-${process.pid}-`);
  expect(statSync(folder).mode & 0o7777).toBe(0o1777);
  expect(readdirSync(folder)).toEqual([]);
});

it.each([
  ["if TMPDIR is set", { environment: { TMPDIR: "/elsewhere" }, bytesMin: 1 }],
  ["without room", { environment: {}, bytesMin: Number.MAX_SAFE_INTEGER }],
  ["without a folder in memory", { environment: {}, bytesMin: 1, memory: "/none/such" }],
])("changes nothing %s", (_when, options) => {
  const before = { ...options.environment };
  expect(useMemoryFolder({ memory, ...options })).toBeUndefined();
  expect(options.environment).toEqual(before);
  expect(readdirSync(memory)).toEqual([]);
});

it("changes nothing if no folder can be created", () => {
  const file = join(memory, "file");
  writeFileSync(file, "");
  const environment = {};
  expect(useMemoryFolder({ memory: file, environment, bytesMin: 1 })).toBeUndefined();
  expect(environment).toEqual({});
});

it("removes the folder of a killed run, and nothing else", () => {
  const { pid } = spawnSync(process.execPath, ["--version"]);
  const others = [`other-${pid}-a`, `stele-tests-${process.pid}-a`, "stele-tests-a"];
  for (const name of [...others, `stele-tests-${pid}-a`]) mkdirSync(join(memory, name, "inner"), { recursive: true });
  useMemoryFolder({ memory, environment: {}, bytesMin: Number.MAX_SAFE_INTEGER });
  expect(readdirSync(memory).toSorted()).toEqual(others);
});
