// `npm run bench`: measures the figures of docs/performance.md, prints them as a table and saves them as JSON. The exit code is 1 if a
// measurement failed. A figure that misses its target does not change the exit code.
// `--help` prints the flags.
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { measurementNames, runFigures } from "../checks/bench/run-figures.mjs";
import { toTable } from "../checks/bench/lib/table.mjs";
import { prepare, root } from "./prepare.mjs";

const usage = `Usage: npm run bench -- [flags]

  --quick        shorter runs and a smaller store
  --only NAME    one measurement: ${measurementNames.join(", ")}
  --events N     events in the store of the measurement stored
  --seconds N    how long callbacks are counted
  --broker FILE  main.js of another build, to measure that build
  --help, -h     print this text
`;

const options = {
  quick: { type: "boolean", default: false },
  only: { type: "string" },
  events: { type: "string" },
  seconds: { type: "string" },
  broker: { type: "string" },
  help: { type: "boolean", short: "h", default: false },
};

/** Parses the flags. Prints an error and returns undefined if they are wrong. */
function readFlags() {
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${usage}`);
    return undefined;
  }
}

const values = readFlags();
if (values === undefined) process.exit(2);
if (values.help) {
  process.stdout.write(usage);
  process.exit(0);
}
if (values.only !== undefined && !measurementNames.includes(values.only)) {
  console.error(`There is no measurement ${values.only}; there are ${measurementNames.join(", ")}.`);
  process.exit(2);
}
if (values.broker === undefined) prepare();

const resultsDir = join(root, "bench-results");
mkdirSync(resultsDir, { recursive: true });
const startedAt = new Date();
const { figures, failed, leftOut } = await runFigures({
  main: resolve(values.broker ?? join(root, "broker", "dist", "bundle", "main.js")),
  resultsDir,
  isQuick: values.quick,
  only: values.only,
  fillEvents: values.events === undefined ? undefined : Number(values.events),
  callbackSeconds: values.seconds === undefined ? undefined : Number(values.seconds),
});

const machine = {
  cpus: cpus().length,
  model: cpus()[0]?.model,
  memoryGb: Math.round(totalmem() / 2 ** 30),
  node: process.version,
  platform: process.platform,
};
const file = join(resultsDir, `${startedAt.toISOString().replaceAll(":", "-")}.json`);
writeFileSync(
  file,
  `${JSON.stringify({ startedAt, isQuick: values.quick, machine, figures, failed, leftOut }, undefined, 2)}\n`,
);
console.log(toTable(figures));
console.log(`\n${machine.cpus} × ${machine.model}, Node ${machine.node}; saved in ${file}`);
for (const what of leftOut) console.log(`Left out: ${what}`);
if (failed.length > 0) {
  console.error(`Not measured: ${failed.join(", ")}`);
  process.exitCode = 1;
}
