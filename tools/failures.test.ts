import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "stele-failures-"));
afterAll(() => rmSync(folder, { recursive: true }));

const files = {
  "test.test.js": `
    describe("a suite", () => it("fails", () => { throw new Error("why\\nand more"); }));
    it("passes", () => {});
    it("passes while a timer throws", () => { setTimeout(() => { throw new Error("later"); }); return new Promise((r) => setTimeout(r, 50)); });`,
  "hook.test.js": `describe("hooks", () => { beforeAll(() => { throw new Error("no world"); }); it("never runs", () => {}); });`,
  "skipped.test.js": `for (let index = 0; index < 22; index += 1) it.skip("number " + index, () => {});`,
  "file.test.js": `throw new Error("cannot be loaded");`,
};

it("lists each failed test, suite and file with its error, each error outside of all tests, and 20 tests that were left out", () => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const script = `
    import { startVitest } from ${JSON.stringify(import.meta.resolve("vitest/node"))};
    import { toFailures } from ${JSON.stringify(new URL("failures.mjs", import.meta.url).href)};
    import { toLeftOut } from ${JSON.stringify(new URL("left-out.mjs", import.meta.url).href)};
    const options = { root: ${JSON.stringify(folder)}, config: false, watch: false, globals: true, reporters: [{}] };
    const vitest = await startVitest("test", [], options);
    const files = vitest.state.getTestModules();
    console.log(JSON.stringify([...toFailures(files, vitest.state.getUnhandledErrors()).sort(), ...toLeftOut(files)]));
    process.exit();`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  expect(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")).toEqual([
    "FAILED file.test.js: cannot be loaded",
    "FAILED hook.test.js > hooks: no world",
    "FAILED outside of all tests: later",
    "FAILED test.test.js > a suite > fails: why | and more",
    "LEFT OUT hook.test.js > hooks > never runs",
    ...Array.from({ length: 19 }, (_, index) => `LEFT OUT skipped.test.js > number ${index}`),
    "LEFT OUT 3 others",
  ]);
}, 60_000);
