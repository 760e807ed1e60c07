import { describe, expect, it } from "vitest";
import { type BrokerOptions, runBroker, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { PublishLoad } from "./support/publish-load.ts";
import { expectFound, expectGaplessSequences, expectHoldsWhatWasSent, replayAll } from "./support/replay.ts";
import { canMount, mountSmallDisk } from "./support/small-disk.ts";

const env = { STELE_SHUTDOWN_DEADLINE_MS: "1000" };
/** What a transaction may take, and so the least of who waits for one. */
const transactionMs = 30_000;
const topics = ["full/a", "full/b"];
/** As long as a GET carries, so that few events fill the disk. */
const load = (): PublishLoad => new PublishLoad(topics, { publishersPerTopic: 4, contentCharacters: 600 });

/** Starts a broker that will run out of room under load, and answers what it said of that when it ended. */
async function runUntilFull(options: BrokerOptions, published: PublishLoad, callbackUrl: string): Promise<string> {
  await using broker = await startBroker(options);
  await using client = new Client(broker.url);
  for (const topic of topics) await client.open(topic);
  await client.subscribe({ topic: "full/+", url: callbackUrl });
  published.start(broker.url);
  await until("it is ending", () => broker.stdout().includes("broker stopping"), { timeoutMs: 60_000 });
  const before = performance.now();
  const exit = await broker.exited;
  // By the deadline that is set, and not by waiting for a transaction.
  expect(performance.now() - before).toBeLessThan(transactionMs);
  await published.stop();
  expect(exit.code).toBe(1);
  return broker.stderr();
}

/** With room again, everything that was acknowledged is there, was or is notified, and publishing goes on. */
async function expectNothingLost(options: BrokerOptions, published: PublishLoad, receiver: Receiver): Promise<void> {
  await using broker = await startBroker(options);
  await using client = new Client(broker.url);
  const events = await replayAll(client);
  await expectGaplessSequences(client, events);
  expectHoldsWhatWasSent(events, published);
  await expectFound(client, published.acknowledged.values());
  const notified = (): Set<string> => new Set(receiver.accepted().map(({ eventId }) => eventId));
  await receiver.waitFor("every event is notified", () => notified().size === events.length);
  const later = await client.publish("full/a", "with room again");
  await expectFound(client, [{ ...later, content: "with room again" }]);
  expect((await broker.stop()).code).toBe(0);
}

describe("a disk that is full (issue: Graceful life)", () => {
  it("ends the broker with a clear error; what was acknowledged is there after a start with room", async () => {
    using folder = createTempFolder();
    await using receiver = await startReceiver();
    const published = load();
    // No file may grow beyond 1,500 KiB; a write beyond fails as on a full disk, for every user.
    const shell = "trap '' XFSZ; ulimit -f 3000; exec \"$@\"";
    const said = await runUntilFull({ dataDir: folder.path, env, shell }, published, receiver.url);
    expect(said).toMatch(/^stele: (chain|store) \S+\.sqlite .*disk/m);
    expect(published.acknowledged.size).toBeGreaterThan(0);
    await expectNothingLost({ dataDir: folder.path }, published, receiver);
  });

  it("refuses a first start with a clear error, and leaves a folder that a later start can use", async () => {
    using folder = createTempFolder();
    const shell = "trap '' XFSZ; ulimit -f 100; exec \"$@\"";
    const before = performance.now();
    const run = await runBroker({ dataDir: folder.path, shell });
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/^stele: .*(disk|write)/m);
    // The start does not wait for a transaction that cannot be written.
    expect(performance.now() - before).toBeLessThan(transactionMs);
    await using broker = await startBroker({ dataDir: folder.path });
    expect((await broker.stop()).code).toBe(0);
  });

  it.runIf(canMount)(
    "of its own that fills up and gets room again loses nothing (needs the right to mount)",
    async () => {
      using disk = mountSmallDisk(3000);
      await using receiver = await startReceiver();
      const published = load();
      const said = await runUntilFull({ dataDir: disk.path, env }, published, receiver.url);
      expect(said).toMatch(/^stele: (chain|store) \S+\.sqlite .*disk/m);
      disk.grow(64_000);
      await expectNothingLost({ dataDir: disk.path }, published, receiver);
    },
  );
});
