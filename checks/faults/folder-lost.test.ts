import { createHash } from "node:crypto";
import { cpSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

const topic = "lost/a";
const gone = /^stele: \S+(chain|store)\.sqlite was moved, deleted or replaced while the broker had it open/m;

/** Data folders that two brokers filled before they were killed. Tests run brokers on copies. */
const filled = createTempFolder();
const [own, another] = [join(filled.path, "own"), join(filled.path, "another")];
beforeAll(async () => {
  await fillAndKill(own);
  await fillAndKill(another);
});
afterAll(() => filled[Symbol.dispose]());

describe("a data folder that is moved or deleted while the broker runs", () => {
  it("if its data folder is moved, a broker ends and says so; moved back, the folder has every acknowledged event", async () => {
    using folder = createTempFolder();
    const [dataDir, away] = [join(folder.path, "data"), join(folder.path, "away")];
    await using broker = await startBroker({ dataDir });
    await using client = new Client(broker.url);
    await client.open(topic);
    const { eventId } = await client.publish(topic, "kept");
    renameSync(dataDir, away);
    expect(await broker.exited).toMatchObject({ code: 3, stderr: expect.stringMatching(gone) });
    renameSync(away, dataDir);
    await using again = await startBroker({ dataDir });
    await using client2 = new Client(again.url);
    expect(await client2.getEvent(eventId)).toMatchObject({ topic });
  });

  it("a broker that writes its first block after its folder was moved ends with the exit code of a lost folder", async () => {
    using folder = createTempFolder();
    const [dataDir, away] = [join(folder.path, "data"), join(folder.path, "away")];
    cpSync(own, dataDir, { recursive: true });
    await using broker = await startBroker({ dataDir, env: { STELE_SHUTDOWN_DEADLINE_MS: "1000" } });
    await using client = new Client(broker.url);
    renameSync(dataDir, away);
    const published = client.publish(topic, "lost").catch(() => {}); // The broker ends meanwhile.
    expect(await broker.exited).toMatchObject({ code: 3, stderr: expect.stringMatching(gone) });
    await published;
  });

  it.each([
    ["ends by itself", "store"],
    ["is to write a block", "store"],
    ["is to write a block", "none"],
    ["is stopped at once", "store"],
    ["is stopping", "store"],
    ["is stopped at once", "none"],
    ["is stopped at once, also by SIGHUP", "store"],
  ])(
    "if another broker's folder replaces the data folder, a broker that %s (coordination: %s) says so, and does not change the other folder",
    async (how, coordination) => {
      using folder = createTempFolder();
      const [dataDir, away, other] = [join(folder.path, "data"), join(folder.path, "away"), join(folder.path, "other")];
      cpSync(another, other, { recursive: true });
      if (how === "is to write a block") cpSync(own, dataDir, { recursive: true });
      const before = readAll(other);
      const env = {
        STELE_COORDINATION: coordination,
        STELE_SHUTDOWN_DEADLINE_MS: "1000",
        STELE_SHUTDOWN_DELAY_MS: how === "is stopping" ? "1000" : "0",
      };
      await using broker = await startBroker({ dataDir, env });
      if (how === "is stopping") {
        broker.signal("SIGTERM");
        await until("the stop has begun", () => broker.stdout().includes("broker stopping"));
      }
      renameSync(dataDir, away);
      renameSync(other, dataDir);
      if (how.startsWith("is stopped at once")) broker.signal("SIGTERM");
      if (how === "is stopped at once, also by SIGHUP") broker.signal("SIGHUP");
      await using client = new Client(broker.url);
      if (how === "is to write a block") await client.publish(topic, "lost").catch(() => {}); // The broker ends meanwhile.
      expect(await broker.exited).toMatchObject({ code: 3, stderr: expect.stringMatching(gone) });
      expect(readAll(dataDir)).toEqual(before);
    },
  );
});

it.each(["chain.sqlite-wal", "store.sqlite-wal"])(
  "a broker whose %s is deleted stops and saves what was in it: the next start has every event and subscription",
  async (name) => {
    using folder = createTempFolder();
    await using broker = await startBroker({ dataDir: folder.path });
    await using client = new Client(broker.url);
    await client.open(topic);
    const subscriptionId = await client.subscribe({ topic, url: "http://127.0.0.1:9999/" });
    const { eventId } = await client.publish(topic, "kept");
    rmSync(join(folder.path, name));
    expect(await broker.exited).toMatchObject({ code: 1, stderr: expect.stringMatching(`${name} was moved, deleted`) });
    await using again = await startBroker({ dataDir: folder.path });
    await using client2 = new Client(again.url);
    expect(await client2.getEvent(eventId)).toMatchObject({ topic });
    expect(await client2.findSubscription(subscriptionId)).toBeDefined();
  },
);

/** Publishes an event and kills the broker, so that the logs have the newest writes. */
async function fillAndKill(dataDir: string): Promise<void> {
  await using broker = await startBroker({ dataDir });
  await using client = new Client(broker.url);
  await client.open(topic);
  await client.publish(topic, "kept");
  await broker.kill();
}

/**
 * The digest of each file in a folder. Leaves out files of SQLite without data: the shared memory, and the journals of the empty lock files. A process that
 * gives up its lock deletes the journal by its path.
 */
function readAll(folder: string): Readonly<Record<string, string>> {
  const digest = (name: string): string =>
    createHash("sha256")
      .update(readFileSync(join(folder, name)))
      .digest("hex");
  const names = readdirSync(folder).filter((name) => !/-shm$|lock-journal$/.test(name));
  return Object.fromEntries(names.map((name) => [name, digest(name)]));
}
