import { execFile } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { devKey, startAnvil } from "../harness/anvil.ts";
import { type BrokerProcess, mainFile, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { groupsEnv } from "../harness/group.ts";
import { createTempFolder, type TempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { chainOf, changeFile, placeOfText } from "./support/damaged-store.ts";
import { type Answers, ask, fill, publishYounger } from "./support/answers.ts";

type Env = Readonly<Record<string, string>>;

/** The store drops its copies of events that are older than a second. */
const drops = { STELE_STORE_RETENTION_MS: "1000" };
const patienceMs = 120_000;
const rounds = Number(process.env["CHECKS_KILL_ROUNDS"] ?? "2");
/** A broker drops copies in steps of 64 batches. The kill comes after a few steps, so that enough copies are left for the next round. */
const eventsPerRound = 320;

async function withBroker<Result>(
  { dataDir, env }: { readonly dataDir: string; readonly env: Env },
  use: (client: Client, broker: BrokerProcess) => Promise<Result>,
): Promise<Result> {
  await using broker = await startBroker({ dataDir, env });
  await using client = new Client(broker.url);
  await until("the broker is ready", () => client.isReady());
  const result = await use(client, broker);
  return result;
}

/** A metric of the only group. */
async function read(client: Client, name: string): Promise<number> {
  const { text } = await client.http.send({ method: "GET", path: "/metrics" });
  return Number(new RegExp(`^${name}\\{group="1"\\} (.*)$`, "m").exec(text)?.[1]);
}

/** The contents of these events by eventId, as the broker answers. */
async function readAll(client: Client, eventIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const queue = eventIds.values();
  const contents = new Map<string, string>();
  const worker = async (): Promise<void> => {
    for (const eventId of queue) contents.set(eventId, (await client.getEvent(eventId)).content);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  return contents;
}

const untilDropped = (client: Client, atLeast: number): Promise<unknown> =>
  until(`${atLeast} batches are dropped`, async () => (await read(client, "stele_batches_dropped_total")) >= atLeast, {
    timeoutMs: patienceMs,
  });

/** Waits until the copies of these events and of all earlier ones are dropped. */
function untilAllDropped(client: Client, eventIds: readonly string[]): Promise<unknown> {
  const last = Math.max(...eventIds.map((eventId) => Number(eventId.split("-")[2])));
  return until("all copies are dropped", async () => (await read(client, "stele_dropped_block")) >= last, {
    timeoutMs: patienceMs,
  });
}

function stele(...args: readonly string[]): Promise<{ readonly code: number; readonly stdout: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [mainFile, ...args], (error, stdout) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout });
    });
  });
}

/** A data folder with an embedded chain. A broker has dropped old events from its store. `before` and `after` have its answers before and after that. */
class DroppedFolder implements Disposable {
  readonly #root = createTempFolder();
  readonly backup = join(this.#root.path, "backup");
  readonly dataDir = join(this.#root.path, "data");
  eventIds: readonly string[] = [];
  before: Answers | undefined;
  after: Answers | undefined;

  async prepare(): Promise<void> {
    const { dataDir, backup } = this;
    await withBroker({ dataDir, env: {} }, async (client) => {
      this.eventIds = await fill(client);
      await publishYounger(client, "r/8");
      this.before = await ask(client, this.eventIds);
    });
    await withBroker({ dataDir, env: drops }, async (client, broker) => {
      await untilAllDropped(client, this.eventIds);
      this.after = await ask(client, this.eventIds);
      expect(await stele("backup", backup, "--data-dir", dataDir)).toMatchObject({ code: 0 });
      await broker.stop(); // so that the chain's file has everything, and its write-ahead log nothing
    });
  }

  /** A new copy of the data folder. */
  copy(): TempFolder {
    const folder = createTempFolder();
    cpSync(this.dataDir, folder.path, { recursive: true });
    return folder;
  }

  [Symbol.dispose](): void {
    this.#root[Symbol.dispose]();
  }
}

describe("embedded chain", () => {
  const dropped = new DroppedFolder();
  beforeAll(() => dropped.prepare(), 300_000);
  afterAll(() => dropped[Symbol.dispose]());

  it("list, state, getEvent and replay are equal byte for byte after the copies are dropped, also in a restored backup; scrubbing finds no damage", async () => {
    const { before, after, eventIds, backup } = dropped;
    expect(JSON.stringify(after)).toBe(JSON.stringify(before));
    using folder = dropped.copy();
    expect(await stele("scrub", "--data-dir", folder.path)).toMatchObject({ code: 0 });
    const dataDir = join(folder.path, "restored");
    expect(await stele("restore", backup, "--data-dir", dataDir)).toMatchObject({ code: 0 });
    expect(await stele("activate", "--data-dir", dataDir)).toMatchObject({ code: 0 });
    const restored = await withBroker({ dataDir, env: {} }, (client) => ask(client, eventIds));
    expect(JSON.stringify(restored)).toBe(JSON.stringify(before));
  }, 300_000);

  it("if a damaged block has an event whose copy was dropped, getEvent returns 200208, health names the block, and other events are found", async () => {
    using folder = dropped.copy();
    changeFile(chainOf(folder), (bytes) => {
      const at = placeOfText(bytes, "one by one 4");
      bytes[at] = (bytes[at] ?? 0) ^ 1;
    });
    const damaged = dropped.eventIds[364] ?? "";
    await withBroker({ dataDir: folder.path, env: {} }, async (client) => {
      await expect(client.getEvent(damaged)).rejects.toMatchObject({ code: 200208 });
      expect(await client.listGroupFailures()).toEqual([
        expect.stringMatching(
          new RegExp(`the chain's file is damaged in block ${damaged.split("-")[2]}:.*storeRetentionMs.*repair`),
        ),
      ]);
      const others = dropped.eventIds.filter((eventId) => eventId !== damaged);
      expect((await readAll(client, others)).size).toBe(others.length);
    });
  }, 300_000);
});

it("anvil: after copies older than 4,096 blocks are dropped, the broker answers their events byte for byte from the chain", async () => {
  await using anvil = await startAnvil();
  using folder = createTempFolder();
  const dataDir = folder.path;
  const groups = groupsEnv([{ id: "1", endpoints: [anvil.url], privateKey: devKey(0), pollMs: 50 }]);
  const { before, eventIds } = await withBroker({ dataDir, env: groups }, async (client) => {
    const ids = await fill(client);
    return { before: await ask(client, ids), eventIds: ids };
  });
  // Each of these blocks is a second younger than the one before it.
  await anvil.request("anvil_mine", ["0x1010"]);
  await withBroker({ dataDir, env: { ...groups, ...drops } }, async (client) => {
    await untilAllDropped(client, eventIds);
    expect(JSON.stringify(await ask(client, eventIds))).toBe(JSON.stringify(before));
  });
}, 300_000);

it("kill -9 while the store drops its copies of old events: no event is lost, and the next start drops the rest", async () => {
  using folder = createTempFolder();
  const dataDir = folder.path;
  const eventIds: string[] = [];
  const oneEventPerTransaction = { STELE_TRANSACTION_EVENTS_MAX: "1", STELE_LOG_LEVEL: "error" };
  await withBroker({ dataDir, env: oneEventPerTransaction }, async (client) => {
    for (const topic of ["k/0", "k/1"]) await client.open(topic);
    const publish = async (start: number): Promise<void> => {
      for (let index = start; index < eventsPerRound * rounds; index += 16) {
        eventIds.push((await client.publish(`k/${index % 2}`, `event ${index}`)).eventId);
      }
    };
    await Promise.all(Array.from({ length: 16 }, (_, start) => publish(start)));
  });
  const contents = await withBroker({ dataDir, env: {} }, async (client) => {
    await publishYounger(client, "k/0");
    return readAll(client, eventIds);
  });
  let dropped = 0;
  for (let round = 0; round < rounds; round += 1) {
    dropped += await withBroker({ dataDir, env: { ...drops, STELE_LOG_LEVEL: "error" } }, async (client, broker) => {
      await untilDropped(client, 64);
      const count = await read(client, "stele_batches_dropped_total");
      await broker.kill();
      return count;
    });
    expect(dropped).toBeLessThan(eventIds.length);
  }
  await withBroker({ dataDir, env: drops }, async (client) => {
    await untilAllDropped(client, eventIds);
    expect(await read(client, "stele_batches_dropped_total")).toBeLessThan(eventIds.length - rounds * 64 + 1);
    expect(await readAll(client, eventIds)).toEqual(contents);
  });
  expect(await stele("scrub", "--data-dir", dataDir)).toMatchObject({ code: 0 });
}, 300_000);
