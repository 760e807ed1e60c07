// `npm run check`: runs all checks. With `--static`, all but the tests.
import { binary, prepare, run } from "./prepare.mjs";

prepare();

const node = process.execPath;
const checks = [
  ["import table", node, ["tools/layers.mjs"]],
  ["types", node, [binary("typescript-7/bin/tsc"), "-p", "tsconfig.check.json"]],
  ["types of the console", node, [binary("typescript-7/bin/tsc"), "-p", "console"]],
  ["lint", node, [binary("oxlint/bin/oxlint"), "--type-aware"]],
  ["format", node, [binary("@biomejs/biome/bin/biome"), "format", "."]],
  ["unused code", node, [binary("knip/bin/knip.js")]],
  ["budget of the console", node, ["tools/console-budget.mjs"]],
  ["page of limits", node, ["tools/limits.mjs"]],
  ["page of settings", node, ["tools/generate-config-docs.mjs"]],
  ["contract artefacts", node, ["contracts/tools/compile.mjs", "--check"]],
];
if (!process.argv.includes("--static")) checks.push(["tests", node, ["tools/test.mjs"]]);

const failed = [];
for (const [name, command, args] of checks) {
  console.log(`— ${name}`);
  if (run(command, args) !== 0) failed.push(name);
}
if (failed.length > 0) {
  console.error(`Failed: ${failed.join(", ")}`);
  process.exitCode = 1;
}
