import { execFile, execFileSync } from "node:child_process";
import { chownSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type BrokerProcess, mainFile, runBroker, startBroker } from "../harness/broker-process.ts";
import { Client, type EventBody } from "../harness/client.ts";
import { accept, type Receiver, startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command `stele` as an operator does. */
function stele(...args: readonly string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, [mainFile, ...args], (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}

const topic = "backup/load";
const publishersMax = 8;
/** Time limit of each wait, in milliseconds: longer than the slowest machine needs. */
const patienceMs = 200_000;

/** Publishes from several connections until `stop` is called. */
class Load {
  /** EventIds of the acknowledged events, in the order of their answers. */
  readonly acknowledged: string[] = [];
  readonly #client: Client;
  #isStopped = false;
  readonly #running: Promise<unknown>;

  constructor(client: Client) {
    this.#client = client;
    this.#running = Promise.all(Array.from({ length: publishersMax }, (_, index) => this.#run(index)));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #run(publisher: number): Promise<void> {
    for (let number = 0; !this.#isStopped; number += 1) {
      const content = `${publisher}-${number} ${"x".repeat(200)}`;
      const { eventId } = await this.#client.publish(topic, content, { "svc-publisher": String(publisher) });
      this.acknowledged.push(eventId);
    }
  }
}

/** The broker's answers to getEvent and proof for each event, as text. */
async function readAll(client: Client, eventIds: readonly string[]): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const eventId of eventIds) {
    for (const operation of ["getEvent", "proof"]) {
      texts.push((await client.http.send({ method: "GET", path: `/rest/${operation}?eventId=${eventId}` })).text);
    }
  }
  return texts;
}

async function withBroker<Result>(dataDir: string, use: (client: Client, broker: BrokerProcess) => Promise<Result>) {
  await using broker = await startBroker({ dataDir });
  await using client = new Client(broker.url);
  const result = await use(client, broker);
  expect((await broker.stop()).code).toBe(0);
  return result;
}

function sequenceOf(event: EventBody | undefined): number {
  return Number(event?.eventId.split("-")[1]);
}

/** Makes a backup under load. Returns the events that were acknowledged before the backup, and the broker's answers about these events. */
async function makeUnderLoad(
  client: Client,
  { data, backup, receiver }: { readonly data: string; readonly backup: string; readonly receiver: Receiver },
) {
  await client.open(topic);
  await client.subscribe({ topic, url: receiver.url, offset: "OFFSET_FIRST" });
  const load = new Load(client);
  await until("the load runs", () => load.acknowledged.length > 100, { timeoutMs: patienceMs });
  const before = [...load.acknowledged];
  const outcome = await stele("backup", backup, "--data-dir", data);
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
  await until("the load continues", () => load.acknowledged.length > before.length, { timeoutMs: patienceMs });
  await load.stop();
  return { before, answers: await readAll(client, before) };
}

describe("a backup of a broker under load", () => {
  it("a backup under load restores to a broker with the same events and proofs, which calls no receiver until it is activated", async () => {
    using folder = createTempFolder();
    const [data, backup, restored] = ["data", "backup", "restored"].map((name) => join(folder.path, name)) as [
      string,
      string,
      string,
    ];
    await using receiver = await startReceiver();
    const { before, answers } = await withBroker(data, (client) => makeUnderLoad(client, { data, backup, receiver }));
    expect(await stele("restore", backup, "--data-dir", restored)).toMatchObject({ code: 0, stderr: "" });
    const called = receiver.attempts.length;

    const head = await withBroker(restored, async (client, broker) => {
      expect(broker.stderr()).toMatch(/Callbacks +paused/);
      expect(await readAll(client, before)).toEqual(answers);
      await client.publish(topic, "after the restore");
      const { sequenceNumber } = await client.state(topic);
      expect(sequenceNumber).toBeGreaterThan(before.length);
      return sequenceNumber;
    });
    expect(receiver.attempts.length).toBe(called);

    expect(await stele("scrub", "--data-dir", restored)).toMatchObject({ code: 0 });
    expect(await stele("activate", "--data-dir", restored)).toMatchObject({ code: 0 });
    receiver.forget();
    await withBroker(restored, async () => {
      await receiver.waitFor("the restored broker delivers", () => sequenceOf(receiver.accepted().at(-1)) === head, {
        timeoutMs: patienceMs,
      });
    });
    const sequences = receiver.accepted().map(sequenceOf);
    expect(sequences).toEqual(sequences.map((_, index) => (sequences[0] ?? 0) + index));
  }, 300_000);
});

describe("backups and restores of a data folder", () => {
  const folder = createTempFolder();
  const path = (name: string): string => join(folder.path, name);

  beforeAll(async () => {
    await withBroker(path("data"), async (client) => {
      await client.open(topic);
      await client.publish(topic, "one");
      expect(
        await stele("key", "create", "--principal", "a", "--role", "admin", "--data-dir", path("data")),
      ).toMatchObject({ code: 0 });
      const role = await stele("role", "set", "kept", '[{"actions":["read"]}]', "--data-dir", path("data"));
      expect(role).toMatchObject({ code: 0 });
      expect(await stele("backup", path("running"), "--data-dir", path("data"))).toMatchObject({ code: 0 });
      cpSync(path("data"), path("copied"), { recursive: true });
    });
    expect(await stele("backup", path("stopped"), "--data-dir", path("data"))).toMatchObject({ code: 0 });
    return () => folder[Symbol.dispose]();
  }, 300_000);

  it.each(["running", "stopped"])("the backup of a %s broker has its keys, and only its owner can read it", (name) => {
    const names = ["backup.json", "chain.sqlite", "keys.sqlite", "signer.key", "store.sqlite"];
    expect(readdirSync(path(name)).toSorted()).toEqual(names);
    for (const file of names) expect(statSync(join(path(name), file)).mode & 0o777).toBe(0o600);
    expect(statSync(path(name)).mode & 0o777).toBe(0o700);
  });

  it.each(["running", "stopped"])("a restore of the backup of a %s broker has the roles of its store", async (name) => {
    const restored = path(`${name} restored`);
    expect(await stele("restore", path(name), "--data-dir", restored)).toMatchObject({ code: 0 });
    const shown = await stele("role", "show", "kept", "--data-dir", restored);
    expect(shown).toMatchObject({ code: 0, stdout: '[{"effect":"allow","actions":["read"]}]\n' });
  });

  it("a restore refuses a folder that somebody copied from a running broker", async () => {
    const outcome = await stele("restore", path("copied"), "--data-dir", path("never"));
    expect(outcome).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/copied is not a whole backup.*`stele backup` makes one/),
    });
    expect(existsSync(path("never"))).toBe(false);
  });

  it("a broker refuses a backup as its data folder, and leaves the backup's files as they were", async () => {
    const before = readdirSync(path("stopped"));
    const { code, stderr } = await runBroker({ dataDir: path("stopped") });
    expect(code).toBe(1);
    expect(stderr).toMatch(/is a backup, and must not change: restore it/);
    expect(readdirSync(path("stopped")).filter((name) => name !== "lock")).toEqual(before);
  });

  it("a backup and a restore refuse a target folder that is not empty", async () => {
    expect(await stele("backup", path("stopped"), "--data-dir", path("data"))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/exists and is not an empty folder/),
    });
    expect(await stele("restore", path("running"), "--data-dir", path("data"))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/data is not empty: restore to a new folder/),
    });
  });

  it("a restore refuses a backup with a changed file, and leaves nothing behind", async () => {
    cpSync(path("running"), path("changed"), { recursive: true });
    const file = join(path("changed"), "chain.sqlite");
    const bytes = readFileSync(file);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    writeFileSync(file, bytes);
    const outcome = await stele("restore", path("changed"), "--data-dir", path("never"));
    expect(outcome).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/chain\.sqlite is not as it was when the backup was made/),
    });
    expect(existsSync(path("never"))).toBe(false);
  });
});

it("a broker that stops during a backup leaves a complete backup or none", async () => {
  using folder = createTempFolder();
  const [data, backup] = [join(folder.path, "data"), join(folder.path, "backup")];
  await using receiver = await startReceiver({ behaviour: accept });
  await using broker = await startBroker({ dataDir: data });
  await using client = new Client(broker.url);
  await client.open(topic);
  await client.subscribe({ topic, url: receiver.url });
  await client.publish(topic, "one");
  writeFileSync(
    join(data, "backup.request"),
    JSON.stringify({ id: "0b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11", target: backup }),
  );
  await until("the broker takes the request", () => !existsSync(join(data, "backup.request")));
  expect((await broker.stop()).code).toBe(0);
  expect(!existsSync(backup) || existsSync(join(backup, "backup.json"))).toBe(true);
});

it("a broker and the backup command end even if reading a file hangs", async () => {
  using folder = createTempFolder();
  const [data, backup] = [join(folder.path, "data"), join(folder.path, "backup")];
  await using broker = await startBroker({ dataDir: data });
  execFileSync("mkfifo", [join(data, "hanging.key")]); // Opening it hangs until somebody writes.
  const command = stele("backup", backup, "--data-dir", data);
  // A backup copies the keys last. So this one hangs soon after it has the store.
  await until("the backup has the store", () => existsSync(join(backup, "store.sqlite")));
  expect(await broker.stop()).toMatchObject({ signal: "SIGKILL" }); // The broker kills itself: see `unlessStuck`.
  expect(broker.stdout()).toMatch(/broker stopped/);
  expect(await command).toMatchObject({ code: 1, stderr: expect.stringMatching(/the broker was stopped/) });
  expect(existsSync(backup)).toBe(false);
});

it.runIf(process.getuid?.() === 0)(
  "root backs up a broker that runs as another user, as it does under the systemd unit",
  async () => {
    using folder = createTempFolder();
    const [data, backups] = [join(folder.path, "data"), join(folder.path, "backups")];
    for (const path of [data, backups]) mkdirSync(path);
    for (const path of [folder.path, data, backups]) chownSync(path, 65_534, 65_534);
    await using broker = await startBroker({
      dataDir: data,
      shell: 'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"',
    });
    expect(await stele("backup", join(backups, "monday"), "--data-dir", data)).toMatchObject({ code: 0, stderr: "" });
    expect(await stele("restore", join(backups, "monday"), "--data-dir", join(folder.path, "restored"))).toMatchObject({
      code: 0,
    });
    expect((await broker.stop()).code).toBe(0);
  },
  120_000,
);
