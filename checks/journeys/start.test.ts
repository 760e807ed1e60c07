import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { Context } from "../conformance/stomp/context.ts";
import { mainFile, runBroker, startAndSignal, startBroker } from "../harness/broker-process.ts";
import { findFreePort } from "../harness/free-port.ts";
import { findProgram } from "../harness/find-program.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

function check(port: string) {
  const args = ["start", "--", "--check-config", "--port", port];
  return spawnSync("npm", args, { cwd: root, encoding: "utf8" });
}

it("npm start passes its flags to the broker, and returns the broker's exit code", () => {
  const good = check("18999");
  expect(good.stdout).toMatch(/18999/);
  expect(good.status).toBe(0);
  const bad = check("x");
  expect(bad.stderr).toMatch(/port/);
  expect(bad.status).toBe(2);
});

it.each([
  [["--port=9090"], "--port"],
  [["--port", "9090"], "--port"],
  [["--check-config"], "--check-config"],
  [["--data-dir=x", "--", "--check-config"], "--data-dir"],
])("npm start exits with 2 for %j, which npm takes for its own flag, and says how to pass it", (args, flag) => {
  const { status, stdout, stderr } = spawnSync("npm", ["start", ...args], { cwd: root, encoding: "utf8" });
  expect({ status, stdout: stdout.replace(/^(?:> .*)?\n/gm, "") }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toContain(`npm took ${flag} for a flag of its own. Write two dashes`);
});

it.each([["--check-config"], ["--help"]])("stele %s tries each address of a name for two seconds", async (flag) => {
  const report = `import { getDefaultAutoSelectFamilyAttemptTimeout as get } from "node:net";
    process.on("exit", () => process.stderr.write("address: " + get()));`;
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(report)}` };
  expect((await runBroker({ args: [flag], env })).stderr).toContain("address: 2000");
});

it.runIf(process.platform === "linux")("the broker exits with 2 if its open-file limit is too low", async () => {
  const { code, stderr } = await runBroker({ shell: 'ulimit -n 400; exec "$@"', args: ["--check-config"] });
  expect(stderr).toMatch(/may open 400 files at once\. It needs at least 512/);
  expect(code).toBe(2);
});

it("in the reason of its failure, the broker escapes characters that would move a terminal's cursor", async () => {
  using folder = createTempFolder();
  const file = join(folder.path, "data\u001b[2J\nbroker");
  writeFileSync(file, "");
  const { code, stderr } = await runBroker({ dataDir: file });
  expect(stderr).toMatch(/^stele: .*data\\u\{1b\}\[2J\\u\{a\}broker.*\n$/);
  expect(code).toBe(1);
});

it.runIf(process.platform === "linux")("the broker keeps running if the reader of its stderr has gone", async () => {
  using folder = createTempFolder();
  const env = { UNREAD: join(folder.path, "unread") };
  // A pipe whose only reader closes it again.
  const shell = 'mkfifo "$UNREAD" && exec 3<>"$UNREAD" 4>"$UNREAD" 3<&- && exec "$@" 2>&4';
  const broker = { dataDir: join(folder.path, "data"), env, shell };
  expect(await startAndSignal(broker, { name: "SIGTERM", when: /"broker started"/ })).toMatchObject({ code: 0 });
});

const script = findProgram("script"); // Of util-linux: runs a command in a terminal of its own.
/** Descriptors are opened again in non-blocking mode only on Linux. */
const canStop = process.platform === "linux" && script !== undefined;

/** Starts a broker in a terminal that Ctrl-S has stopped: the shell goes on only after the line behind it. */
function startInStoppedTerminal(settings: Readonly<Record<string, string>>) {
  const command = `read -r line && exec '${process.execPath}' '${mainFile}'`;
  const env = { PATH: process.env["PATH"], STELE_MQTT_PORT: "off", STELE_STOMP_PORT: "off", ...settings };
  const terminal = spawn("script", ["-qefc", command, "/dev/null"], { env: { ...env, SHELL: "/bin/sh" } });
  onTestFinished(() => void terminal.kill("SIGKILL"));
  let shown = "";
  terminal.stdout.on("data", (chunk: Buffer) => (shown += chunk.toString()));
  terminal.stdin.write("\u0013\n");
  return { terminal, shown: () => shown };
}

it.runIf(canStop)("the broker serves while Ctrl-S stops its terminal, and Ctrl-C ends it", async () => {
  using folder = createTempFolder();
  const port = await findFreePort();
  const settings = { STELE_DATA_DIR: folder.path, STELE_PORT: String(port), STELE_LOG_LEVEL: "debug" };
  const { terminal, shown } = startInStoppedTerminal(settings);
  const call = async (path: string): Promise<boolean> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(10_000) });
    await response.text();
    return response.ok;
  };
  await until("the broker is ready", () => call("/health/ready").catch(() => false));
  for (let count = 1; count <= 100; count += 1) await call(`/rest/state?topic=call-${count}-`);
  expect(shown()).not.toContain("call-");
  terminal.stdin.write("\u0011");
  await until("the terminal shows the last line", () => shown().includes("call-100-"));
  await until("the terminal shows the banner", () => /Group +1: .*\r\n/.test(shown())); // It has a queue of its own, which may come after the log's.
  terminal.stdin.write("\u0003");
  const [code] = await once(terminal, "exit");
  expect(code).toBe(0);
});

it.runIf(canStop)("a start that fails ends with 1 while Ctrl-S stops its terminal", async () => {
  const { terminal } = startInStoppedTerminal({ STELE_DATA_DIR: "/dev/null", STELE_PORT: "0" });
  const [code] = await once(terminal, "exit");
  expect(code).toBe(1);
});

/** A loopback address that no other test uses, so that no other broker listens at its default ports. */
const host = "127.0.61.13";

it.runIf(process.platform === "linux")("by default, STOMP is at port 61613, and the banner says so", async () => {
  using folder = createTempFolder();
  const shell = 'unset STELE_STOMP_PORT; exec "$@"';
  await using broker = await startBroker({ dataDir: folder.path, env: { STELE_HOST: host }, shell });
  expect(broker.stderr()).toMatch(/^ {2}STOMP {5}stomp:\/\/127\.0\.61\.13:61613$/m);
  const addresses = { tcp: 61_613, websocket: "", host };
  const context = new Context({ addresses, transport: "tcp", version: "1.2", cut: "frames", name: "default" });
  await context.connect();
  context.close();
});
