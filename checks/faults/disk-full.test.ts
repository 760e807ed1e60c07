import { describe, expect, it } from "vitest";
import { type BrokerOptions, runBroker, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { PublishLoad } from "./support/publish-load.ts";
import { expectFound, expectGaplessSequences, expectMatchesLoad, replayAll } from "./support/replay.ts";
import { canMount, mountSmallDisk } from "./support/small-disk.ts";

const env = { STELE_SHUTDOWN_DEADLINE_MS: "1000" };
/** Timeout of a transaction, in milliseconds. A broker that waited for a transaction would take at least this long. */
const transactionMs = 30_000;
const topics = ["full/a", "full/b"];
/** Contents are long, so that few events fill the disk, but still fit in a GET. */
const load = (): PublishLoad => new PublishLoad(topics, { publishersPerTopic: 4, contentCharacters: 600 });

/** Runs a broker under load until it has filled its disk and exits. Returns its stderr. */
async function runUntilFull(options: BrokerOptions, published: PublishLoad, callbackUrl: string): Promise<string> {
  await using broker = await startBroker(options);
  await using client = new Client(broker.url);
  for (const topic of topics) await client.open(topic);
  await client.subscribe({ topic: "full/+", url: callbackUrl });
  published.start(broker.url);
  await until("the broker is stopping", () => broker.stdout().includes("broker stopping"), { timeoutMs: 60_000 });
  const before = performance.now();
  const exit = await broker.exited;
  // The broker exits within the shutdown deadline, and does not wait for a transaction.
  expect(performance.now() - before).toBeLessThan(transactionMs);
  await published.stop();
  expect(exit.code).toBe(1);
  return broker.stderr();
}

/** Checks that a broker with enough space has every acknowledged event, delivers every event, and publishes new ones. */
async function expectNothingLost(options: BrokerOptions, published: PublishLoad, receiver: Receiver): Promise<void> {
  await using broker = await startBroker(options);
  await using client = new Client(broker.url);
  const events = await replayAll(client);
  await expectGaplessSequences(client, events);
  expectMatchesLoad(events, published);
  await expectFound(client, published.acknowledged.values());
  const notified = (): Set<string> => new Set(receiver.accepted().map(({ eventId }) => eventId));
  await receiver.waitFor("every event is delivered", () => notified().size === events.length);
  const later = await client.publish("full/a", "with space again");
  await expectFound(client, [{ ...later, content: "with space again" }]);
  expect((await broker.stop()).code).toBe(0);
}

describe("a full disk", () => {
  it("a full disk stops the broker with a clear error; acknowledged events are there after a restart with free space", async () => {
    using folder = createTempFolder();
    await using receiver = await startReceiver();
    const published = load();
    // No file can grow beyond 1,500 KiB. A write beyond that fails as on a full disk, also for root.
    const shell = "trap '' XFSZ; ulimit -f 3000; exec \"$@\"";
    const said = await runUntilFull({ dataDir: folder.path, env, shell }, published, receiver.url);
    expect(said).toMatch(/^stele: (chain|store) \S+\.sqlite .*disk/m);
    expect(published.acknowledged.size).toBeGreaterThan(0);
    await expectNothingLost({ dataDir: folder.path }, published, receiver);
  });

  it("a full disk makes a first start fail with a clear error, and leaves a folder that a later start can use", async () => {
    using folder = createTempFolder();
    const shell = "trap '' XFSZ; ulimit -f 100; exec \"$@\"";
    const before = performance.now();
    const run = await runBroker({ dataDir: folder.path, shell });
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/^stele: .*(disk|write)/m);
    // The start does not wait for a transaction that it cannot write.
    expect(performance.now() - before).toBeLessThan(transactionMs);
    await using broker = await startBroker({ dataDir: folder.path });
    expect((await broker.stop()).code).toBe(0);
  });

  it.runIf(canMount)(
    "a broker on a separate full disk loses nothing once the disk has space again (needs the right to mount)",
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
