import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "stele-test-"));
const timeoutMs = 60_000;
afterAll(() => rmSync(folder, { recursive: true }));

it(
  "npm test --slow prints the time of each file and the number of tests, even if the caller chooses a reporter",
  () => {
    const report = join(folder, "report.json");
    const flags = ["--slow", "--reporter=json", `--outputFile=${report}`];
    const args = [join(import.meta.dirname, "test.mjs"), "tools/installed-packages.test.ts", ...flags];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
    const { numPassedTests } = JSON.parse(readFileSync(report, "utf8")) as { numPassedTests: number }; // Vitest's own format.
    expect(stdout).toMatch(/^ +\d+\.\d s {2}tools\/installed-packages\.test\.ts$/m);
    expect(stdout.trimEnd().split("\n").at(-1)).toBe(`${numPassedTests} passed, 0 failed`);
    expect(status).toBe(0);
  },
  timeoutMs,
);
