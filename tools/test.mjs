// `npm test`: prepares what is missing, then runs every test that needs no service of its own. Arguments are handed to the runner.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBinaries } from "./postgres-programs.mjs";
import { binary, prepare, run } from "./prepare.mjs";

prepare();

const folder = mkdtempSync(join(tmpdir(), "stele-test-"));
const report = join(folder, "report.json");
const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
const code = run(process.execPath, [binary("vitest/vitest.mjs"), "run", ...reporters, ...process.argv.slice(2)]);
const counts = readCounts(report);
rmSync(folder, { recursive: true });
if (findBinaries() === undefined) tellMissing("PostgreSQL", { package: "postgresql", variable: "CHECKS_POSTGRES" });
if (spawnSync("strace", ["-V"]).error !== undefined) {
  tellMissing("strace", { package: "strace", variable: "CHECKS_STRACE" });
}
if (counts.skipped > 0) console.log(`${counts.skipped} tests left out: see above for what they need.`);
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = code;

function tellMissing(name, { package: debian, variable }) {
  const fate = process.env[variable] === "required" ? "failed, since they are required here" : "were left out";
  console.log(
    `${name} is not installed: the tests with it ${fate}. Debian and Ubuntu have it by apt-get install ${debian}.`,
  );
}

function readCounts(file) {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numFailedTestSuites } = JSON.parse(
      readFileSync(file, "utf8"),
    );
    // A file that fails before its first test has no failed test; it counts as one all the same.
    const failed = Math.max(numFailedTests, numFailedTestSuites > 0 ? 1 : 0);
    return { passed: numPassedTests, failed, skipped: numPendingTests };
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}
