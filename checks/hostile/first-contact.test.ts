import { chmodSync, cpSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startLocalBroker } from "../faults/support/local-broker.ts";
import { type BrokerProcess, startAndSignal, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { type Behaviour, startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { stateOf } from "./support/folder-state.ts";

/** Makes node-gyp-build look for the addons in a folder that does not exist. */
const noAddons = { SECP256K1_PREBUILD: "/nonexistent", KECCAK_PREBUILD: "/nonexistent" };
/** Size of an SQLite page. */
const pageBytes = 4096;

const refuse: Behaviour = (_attempt, response) => void response.writeHead(500).end();

/** Lines of the log with this message. */
function logged(broker: { stdout(): string }, message: string): readonly Readonly<Record<string, unknown>>[] {
  const lines = broker.stdout().split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => line["message"] === message);
}

async function publishOnce(broker: BrokerProcess, topic = "f/c"): Promise<string> {
  await using client = new Client(broker.url);
  await client.open(topic);
  const { eventId } = await client.publish(topic, "1");
  return eventId;
}

describe("a native addon that does not load", () => {
  it("if a native addon does not load, the broker signs with noble, never loads elliptic, and logs the choice", async () => {
    using folder = createTempFolder();
    const dataDir = join(folder.path, "data");
    const spy = join(folder.path, "spy.cjs");
    const seen = join(folder.path, "seen");
    writeFileSync(
      spy,
      `const { appendFileSync } = require("node:fs");
       const module_ = require("node:module");
       const load = module_._load;
       module_._load = function (request, ...rest) {
         if (/elliptic|secp256k1/.test(request)) appendFileSync(${JSON.stringify(seen)}, request + "\\n");
         return load.call(this, request, ...rest);
       };`,
    );
    const env = { ...noAddons, NODE_OPTIONS: `--require ${spy}` };
    await using broker = await startBroker({ dataDir, env });
    const eventId = await publishOnce(broker);
    expect(broker.stderr()).toMatch(/^ {2}Signing +noble/m);
    expect(logged(broker, "cryptography chosen")).toMatchObject([{ level: "warn", signing: "noble", hashing: "wasm" }]);
    expect((await broker.stop()).code).toBe(0);
    const requests = readFileSync(seen, "utf8");
    expect(requests).toContain("secp256k1"); // The spy sees each loaded module.
    expect(requests).not.toContain("elliptic");

    await using native = await startBroker({ dataDir });
    await using client = new Client(native.url);
    expect(await client.getEvent(eventId)).toMatchObject({ eventId });
    expect((await client.publish("f/c", "2")).eventId).toMatch(/-2-\d+$/);
    expect(native.stderr()).toMatch(/^ {2}Signing +native addon/m);
    expect(logged(native, "cryptography chosen")).toMatchObject([
      { level: "info", signing: "native", hashing: "wasm" },
    ]);
  });
});

describe("a secret that others may read", () => {
  it("a secret file that others, or only its group, may read causes a warning with its mode and the remedy", async () => {
    using folder = createTempFolder();
    const dataDir = join(folder.path, "data");
    await using first = await startBroker({ dataDir });
    await first.stop();
    const keyFile = join(folder.path, "key.pem");
    writeFileSync(keyFile, "11".repeat(32));
    chmodSync(keyFile, 0o640);
    const configFile = join(folder.path, "stele.json");
    const groups = [
      { id: "1", endpoints: "embedded" },
      { id: "2", endpoints: ["http://127.0.0.1:1/key-of-the-endpoint"], signer: { privateKeyFile: keyFile } },
    ];
    writeFileSync(configFile, JSON.stringify({ groups }));
    chmodSync(configFile, 0o604);
    const signerKey = join(dataDir, "signer.key");
    chmodSync(signerKey, 0o644);
    chmodSync(dataDir, 0o755);
    const when = /group not started, trying again/;
    const run = await startAndSignal({ dataDir, args: ["--config", configFile] }, { name: "SIGTERM", when });
    const warnings = logged({ stdout: () => run.stdout }, "secret file is open to other users");
    expect(warnings).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ file: signerKey, mode: "0644", remedy: `chmod 600 ${signerKey}` }),
        expect.objectContaining({ file: keyFile, mode: "0640", remedy: `chmod 600 ${keyFile}` }),
        expect.objectContaining({ file: configFile, mode: "0604", remedy: `chmod 600 ${configFile}` }),
      ]),
    );
    expect(logged({ stdout: () => run.stdout }, "data folder is open to other users")).toMatchObject([
      { folder: dataDir, mode: "0755", remedy: `chmod 700 ${dataDir}` },
    ]);
  });
});

describe("a data folder with a missing part", () => {
  const folder = createTempFolder();
  const killed = join(folder.path, "killed");
  beforeAll(async () => {
    await using broker = await startBroker({ dataDir: killed });
    await publishOnce(broker);
    await broker.kill();
  });
  afterAll(() => folder[Symbol.dispose]());

  it.each([
    ["chain.sqlite and its log", ["chain.sqlite", "chain.sqlite-wal"]],
    ["chain.sqlite but with its log", ["chain.sqlite"]],
    ["the log of chain.sqlite and all but its first page", ["chain.sqlite-wal"]],
    ["signer.key", ["signer.key"]],
    ["store.sqlite but with its log", ["store.sqlite"]],
    ["chain.sqlite, its log and signer.key", ["chain.sqlite", "chain.sqlite-wal", "signer.key"]],
  ] as const)("without %s, the broker refuses to start before it writes anything", async (title, files) => {
    const dataDir = join(folder.path, title);
    cpSync(killed, dataDir, { recursive: true });
    for (const file of files) rmSync(join(dataDir, file));
    if (title.includes("first page")) truncateSync(join(dataDir, "chain.sqlite"), pageBytes);
    const before = stateOf(dataDir);
    const refusal = await startLocalBroker({ dataDir, log: [] }).catch(String);
    expect(refusal).toContain(join(dataDir, files[0].replace("-wal", "")));
    expect(refusal).toMatch(/ missing.*(Restore|in its place)/);
    expect(stateOf(dataDir)).toEqual(before);
  });
});

describe("a copied data folder", () => {
  it("a broker on a copied data folder with --deliveries paused serves clients but calls no receiver; restarted without the option, it delivers every event after its cursors", async () => {
    using folder = createTempFolder();
    await using receiver = await startReceiver();
    const original = join(folder.path, "original");
    const copy = join(folder.path, "copy");
    await using first = await startBroker({ dataDir: original });
    await using client = new Client(first.url);
    await client.open("p/1");
    const id = await client.subscribe({ topic: "p/1", url: receiver.url });
    await client.publish("p/1", "0");
    await receiver.waitForCount(1);
    await first.stop();
    cpSync(original, copy, { recursive: true });
    receiver.forget();

    await using paused = await startBroker({ dataDir: copy, args: ["--deliveries", "paused"] });
    await using operator = new Client(paused.url);
    const later = await operator.subscribe({ topic: "p/#", url: receiver.url });
    const sent = [];
    for (const content of ["1", "2", "3"]) sent.push((await operator.publish("p/1", content)).eventId);
    for (const each of [id, later]) {
      expect(await operator.findSubscription(each)).toMatchObject({ notifyingEventCount: "3" });
    }
    expect(await operator.isReady()).toBe(true);
    const health = await (await fetch(`${paused.url}/health/ready`)).json();
    expect(health).toMatchObject({ groups: [{ warning: expect.stringContaining("paused") }] });
    expect(paused.stderr()).toMatch(/^ {2}Callbacks +paused/m);
    expect((await paused.stop()).code).toBe(0);
    expect(receiver.attempts).toEqual([]);

    await using active = await startBroker({ dataDir: copy });
    await receiver.waitForCount(6);
    for (const each of [id, later]) {
      const accepted = receiver.attempts.filter(({ subscriptionId }) => subscriptionId === each);
      expect(accepted.map(({ event }) => event.eventId)).toEqual(sent);
    }
    expect(active.stderr()).not.toContain("paused");
  });
});

describe("a receiver that fails repeatedly", () => {
  it("the log names the host, not the url, of a receiver that fails repeatedly, at most once a minute, and once when it recovers", async () => {
    using folder = createTempFolder();
    await using receiver = await startReceiver({ behaviour: refuse });
    const env = { STELE_CALLBACK_BACKOFF_MIN_MS: "10", STELE_CALLBACK_BACKOFF_MAX_MS: "10" };
    await using broker = await startBroker({ dataDir: folder.path, env });
    await using client = new Client(broker.url);
    await client.open("r/1");
    for (const name of ["a", "b"]) await client.subscribe({ topic: "r/1", url: `${receiver.url}/${name}?t=hunter2` });
    await client.publish("r/1", "1");
    await receiver.waitFor("100 attempts", () => receiver.attempts.length >= 100);
    const lines = logged(broker, "delivery failed");
    expect(lines.length).toBeLessThanOrEqual(2); // One, unless the attempts took more than a minute.
    expect(lines[0]).toMatchObject({ receiver: new URL(receiver.url).host, failures: 1 });
    receiver.setBehaviour((_attempt, response) => void response.writeHead(200).end());
    await receiver.waitForCount(2);
    await until("the log reports the recovery", () => logged(broker, "delivery works again").length > 0);
    expect(logged(broker, "delivery works again")).toMatchObject([
      { receiver: new URL(receiver.url).host, failures: expect.any(Number) },
    ]);
    expect(broker.stdout()).not.toContain("hunter2");
    expect(broker.stdout()).not.toContain("/hook");
  });
});

describe("the log as text", () => {
  it("the log as text has the time on each line", async () => {
    using folder = createTempFolder();
    await using broker = await startBroker({ dataDir: folder.path, args: ["--log-format", "text"] });
    await broker.stop();
    const lines = broker.stdout().split("\n").slice(0, -1);
    expect(lines.length).toBeGreaterThan(1);
    for (const line of lines) expect(line).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z \w+ /);
    expect(existsSync(join(folder.path, "signer.key"))).toBe(true);
  });
});
