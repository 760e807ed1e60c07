// `npm run test:paho -- FOLDER`: runs the Eclipse Paho interoperability suites against the bundle. FOLDER is a copy of the folder `interoperability`
// of eclipse/paho.mqtt.testing. Each test has its own process and a time limit, each worker its own broker. `--help` prints the flags.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openTls, openWebSocket, startBridge } from "./bridge.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const mainFile = join(here, "..", "..", "..", "..", "broker", "dist", "bundle", "stele.js");
const testLimitMs = 60_000;
const startLimitMs = 60_000;
const transports = ["tcp", "tls", "websocket"];
const suites = ["client_test", "client_test5"];

/** Settings that the suites expect; see docs/mqtt.md. */
const settings = {
  STELE_PORT: "0",
  STELE_MQTT_PORT: "0",
  STELE_MQTT_RECEIVE_MAX: "20",
  STELE_MQTT_TOPIC_ALIAS_MAX: "10",
  STELE_MQTT_PACKET_BYTES_MAX: "65000",
  STELE_MQTT_KEEP_ALIVE_SECONDS_MAX: "60",
  STELE_MQTT_EVENT_PLACE: "off",
  STELE_MQTT_FILTERS_REFUSED: "test/nosubscribe",
  STELE_MQTT_DENIAL_CODE: "unspecified",
};

function print(line) {
  process.stdout.write(`${line}\n`);
}

/** Running brokers and tests. They end with this process. */
const running = new Set();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

function run(file, args, options) {
  const child = spawn(file, args, options);
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

const usage = `Usage: npm run test:paho -- FOLDER [flags]

  FOLDER            the folder interoperability of eclipse/paho.mqtt.testing; without it, nothing runs
  --transport NAME  ${transports.join(", ")} or all; default tcp
  --only NAME       tests whose name contains this
  --workers N       tests at once, default 4
  --help, -h        print this text
`;

const options = {
  transport: { type: "string", default: "tcp" },
  only: { type: "string", default: "" },
  workers: { type: "string", default: "4" },
  help: { type: "boolean", short: "h", default: false },
};

function readTests(folder, only) {
  return suites.flatMap((suite) => {
    const text = readFileSync(join(folder, `${suite}.py`), "utf8");
    const names = [...text.matchAll(/^ {4}def (test\w*|will_message_test)\(self/gm)].map(([, name]) => name);
    return names.filter((name) => name.includes(only)).map((name) => ({ suite, name }));
  });
}

/** Creates a self-signed certificate for localhost. */
function createCertificate(folder) {
  const files = { key: join(folder, "key.pem"), certificate: join(folder, "certificate.pem") };
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const form = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  execFileSync("openssl", [...form, "-keyout", files.key, "-out", files.certificate, ...subject], { stdio: "ignore" });
  return files;
}

/** Starts a broker. Returns its `stop`, and a port for plain TCP: the broker's own, or that of a bridge, which forwards over `transport`. */
async function startBroker(transport) {
  const folder = mkdtempSync(join(tmpdir(), "stele-paho-"));
  const env = { PATH: process.env.PATH, ...settings, STELE_DATA_DIR: join(folder, "data") };
  const files = transport === "tls" ? createCertificate(folder) : undefined;
  if (files !== undefined) {
    env.STELE_MQTT_TLS_PORT = "0";
    env.STELE_MQTT_TLS_CERTIFICATE_FILE = files.certificate;
    env.STELE_MQTT_TLS_KEY_FILE = files.key;
  }
  const child = run(process.execPath, [mainFile], { env, stdio: ["ignore", "ignore", "pipe"] });
  const banner = await readBanner(child);
  const bridge = await openBridge(transport, { banner, certificate: files?.certificate });
  const stop = async () => {
    bridge?.close();
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { port: bridge?.port ?? Number(new URL(find(banner, /^ {2}MQTT +(\S+)$/m)).port), stop };
}

async function openBridge(transport, { banner, certificate }) {
  if (transport === "tcp") return undefined;
  if (transport === "websocket") {
    const address = `${find(banner, /^ {2}REST +(\S+)\/rest\//m).replace(/^http/, "ws")}/mqtt`;
    return startBridge(() => openWebSocket(address));
  }
  const address = find(banner, /^ {2}MQTT TLS +(\S+)$/m);
  const authority = readFileSync(certificate);
  return startBridge(() => openTls(address, authority));
}

function find(text, pattern) {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Error(`the banner has no ${pattern}:\n${text}`);
  return found;
}

function readBanner(child) {
  return new Promise((done, fail) => {
    let text = "";
    const limit = setTimeout(() => fail(new Error(`the broker did not start:\n${text}`)), startLimitMs);
    child.stderr.on("data", (chunk) => {
      text += chunk;
      if (!/^ {2}Group /m.test(text)) return;
      clearTimeout(limit);
      done(text);
    });
    child.once("exit", (code) => fail(new Error(`the broker ended with ${code}:\n${text}`)));
  });
}

/** Returns undefined if the test passes, otherwise its output. */
function runTest(folder, { suite, name }, port) {
  return new Promise((done) => {
    const child = run("python3", ["-B", join(here, "run-one.py"), folder, suite, name, String(port)]);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
    const limit = setTimeout(() => {
      output += `\nthe test did not end within ${testLimitMs} ms\n`;
      child.kill("SIGKILL");
    }, testLimitMs);
    child.once("close", (code) => {
      clearTimeout(limit);
      done(code === 0 ? undefined : output);
    });
  });
}

/** Runs tests of `waiting` one after the other against one broker, until none is left. */
async function work(transport, { folder, waiting, results }) {
  const broker = await startBroker(transport);
  for (let test = waiting.shift(); test !== undefined; test = waiting.shift()) {
    const startedAt = performance.now();
    const failure = await runTest(folder, test, broker.port);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    print(`${failure === undefined ? "passed" : "FAILED"}  ${transport} ${test.suite} ${test.name} (${seconds} s)`);
    if (failure !== undefined) print(failure.replaceAll(/^/gm, "    "));
    results.push({ transport, ...test, isPassed: failure === undefined });
  }
  await broker.stop();
}

function report(results) {
  for (const transport of transports) {
    for (const suite of suites) {
      const own = results.filter((result) => result.transport === transport && result.suite === suite);
      const passed = own.filter(({ isPassed }) => isPassed).length;
      if (own.length > 0) print(`${suite} over ${transport}: ${passed} of ${own.length}`);
    }
  }
}

const { values, positionals } = parseArgs({ options, allowPositionals: true });
if (values.help) {
  process.stdout.write(usage);
  process.exit(0);
}
const [given] = positionals;
if (given === undefined) {
  print(`LEFT OUT: the Paho interoperability suites did not run, because no folder was given.\n\n${usage}`);
  process.exit(0);
}
const folder = resolve(given);
if (!existsSync(join(folder, "client_test5.py"))) {
  print(`${folder} has no client_test5.py: give the folder interoperability of eclipse/paho.mqtt.testing.`);
  process.exit(2);
}
if (!["all", ...transports].includes(values.transport ?? "")) {
  print(`--transport is none of ${transports.join(", ")}, all.`);
  process.exit(2);
}
const chosen = values.transport === "all" ? transports : [values.transport];
const results = [];
for (const transport of chosen) {
  const waiting = readTests(folder, values.only);
  const count = Math.min(Number(values.workers), waiting.length);
  await Promise.all(Array.from({ length: count }, () => work(transport, { folder, waiting, results })));
}
report(results);
process.exitCode = results.length > 0 && results.every(({ isPassed }) => isPassed) ? 0 : 1;
