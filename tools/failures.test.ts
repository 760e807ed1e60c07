import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "stele-failures-"));
afterAll(() => rmSync(folder, { recursive: true }));

const files = {
  "test.test.js": `
    describe("a suite", () => it("fails", () => { throw new Error("why\\nand more"); }));
    it("passes", () => {});
    it("passes while a timer throws", () => { setTimeout(() => { throw new Error("later"); }); return new Promise((r) => setTimeout(r, 50)); });`,
  "hook.test.js": `describe("hooks", () => { beforeAll(() => { throw new Error("no world"); }); it("never runs", () => {}); });`,
  "file.test.js": `throw new Error("cannot be loaded");`,
};

it("lists each failed test, suite and file with its error, and each error outside of all tests", () => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const script = `
    import { startVitest } from ${JSON.stringify(import.meta.resolve("vitest/node"))};
    import { toFailures } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, "failures.mjs")).href)};
    const options = { root: ${JSON.stringify(folder)}, config: false, watch: false, globals: true, reporters: [{}] };
    const vitest = await startVitest("test", [], options);
    console.log(JSON.stringify(toFailures(vitest.state.getTestModules(), vitest.state.getUnhandledErrors()).sort()));
    process.exit();`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toEqual([
    "FAILED file.test.js: cannot be loaded",
    "FAILED hook.test.js > hooks: no world",
    "FAILED outside of all tests: later",
    "FAILED test.test.js > a suite > fails: why | and more",
  ]);
}, 60_000);
