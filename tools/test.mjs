// `npm test`: installs and builds what is missing, then runs the tests, and names each program that tests need and this machine does not have. Passes its
// arguments to Vitest; with `--slow` it also prints the time that each file took.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseCLI, startVitest } from "vitest/node";
import { findBinaries } from "./postgres-programs.mjs";
import { prepare, root, runNpm } from "./prepare.mjs";
import { toFailures } from "./failures.mjs";
import { toLeftOut } from "./left-out.mjs";
import { toSlowTable } from "./slow-table.mjs";

prepare();

const args = process.argv.slice(2);
const forRunner = args.filter((argument) => argument !== "--slow");
const { filter, options } = parseCLI(["vitest", "run", ...forRunner]);
const vitest = await startVitest("test", filter, { ...options, root });
const files = vitest.state.getTestModules();

if (args.includes("--slow")) console.log(toSlowTable(files));
if (findBinaries() === undefined) reportMissing("PostgreSQL", { package: "postgresql", variable: "CHECKS_POSTGRES" });
if (spawnSync("strace", ["-V"]).error !== undefined) {
  reportMissing("strace", { package: "strace", variable: "CHECKS_STRACE" });
}
for (const shell of ["fish", "zsh"]) {
  if (spawnSync(shell, ["--version"]).error === undefined) continue;
  reportMissing(shell, { package: shell, variable: `CHECKS_${shell.toUpperCase()}` });
}
if (spawnSync("mosquitto_pub", ["--help"]).error !== undefined) {
  reportMissing("mosquitto_pub", { package: "mosquitto-clients", variable: "CHECKS_MOSQUITTO" });
}
if (["chromium-headless-shell", "chromium"].every((name) => spawnSync(name, ["--version"]).error !== undefined)) {
  reportMissing("Chromium", { package: "chromium-headless-shell", variable: "CHECKS_CHROMIUM" });
}
if (spawnSync("promtool", ["--version"]).error !== undefined) {
  reportMissing("promtool", { package: "prometheus", variable: "CHECKS_PROMTOOL" });
}
if (spawnSync("javac", ["--version"]).error !== undefined) {
  reportMissing("A JDK", { package: "default-jdk-headless", variable: "CHECKS_JAVA" });
}
if (spawnSync("go", ["version"]).error !== undefined) {
  reportMissing("Go", { package: "golang-go", variable: "CHECKS_GO" });
}
if (!existsSync(join(root, "broker", "dist", "docs", "index.html"))) {
  const fate = process.env.CHECKS_DOCS === "required" ? "failed, since they are required here" : "were left out";
  console.log(`The documentation's site is not built: the tests with it ${fate}. Build it with: npm run build:docs`);
}
if (runNpm(["ping", "--fetch-retries=0", "--fetch-timeout=5000"], { stdio: "ignore" }) !== 0) {
  const fate = process.env.CHECKS_REGISTRY === "required" ? "failed, since they are required here" : "were left out";
  console.log(`npm's registry does not answer: the tests of the packed tarballs ${fate}.`);
}
if (spawnSync("systemd-analyze", ["--version"]).error !== undefined) {
  console.log("systemd-analyze is not installed: the test of the systemd unit was left out.");
}
if (spawnSync("helm", ["version"]).error !== undefined) {
  console.log("helm is not installed: the test of the Helm chart was left out.");
}
const pythonClients = {
  "paho-mqtt 2": "from paho.mqtt.client import CallbackAPIVersion",
  "stomp.py": "import stomp",
  "cloudevents 2": "import cloudevents.core.formats.json",
  standardwebhooks: "import standardwebhooks",
  "openapi-python-client": "import openapi_python_client",
  "openapi-generator-cli, with urllib3, python-dateutil and pydantic,":
    "import openapi_generator_cli, urllib3, dateutil, pydantic",
};
for (const [name, statement] of Object.entries(pythonClients)) {
  if (spawnSync(process.env.CHECKS_PYTHON ?? "python3", ["-c", statement]).status === 0) continue;
  console.log(
    `${name} for Python is not installed: the tests with it were left out. To run them, set CHECKS_PYTHON to a Python that has it.`,
  );
}
if (spawnSync("/usr/bin/python3", ["-c", "import stomp"]).status !== 0) {
  reportMissing("Debian's stomp.py", { package: "python3-stomp", variable: "CHECKS_DEBIAN_PYTHON" });
}
const { passed, failed } = countTests();
const failures = toFailures(files, vitest.state.getUnhandledErrors());
if (failures.length > 0) console.log(failures.join("\n"));
const leftOut = toLeftOut(files);
if (leftOut.length > 0) console.log(leftOut.join("\n"));
console.log(`${passed} passed, ${failed} failed`);
process.exit();

function reportMissing(name, { package: debian, variable }) {
  const fate = process.env[variable] === "required" ? "failed, since they are required here" : "were left out";
  console.log(
    `${name} is not installed: the tests with it ${fate}. On Debian and Ubuntu, install it with: apt-get install ${debian}`,
  );
}

function countTests() {
  const states = files.flatMap((file) => [...file.children.allTests()].map((test) => test.result().state));
  const count = (state) => states.filter((found) => found === state).length;
  // A failure before a file's first test, or outside of all files, belongs to no test: it counts as one.
  return {
    passed: count("passed"),
    failed: Math.max(count("failed"), process.exitCode ? 1 : 0),
  };
}
