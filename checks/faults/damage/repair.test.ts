import { copyFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { runStele } from "../../harness/stele-command.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import type { Acknowledged } from "../support/acknowledged.ts";
import { changeFile } from "../support/damaged-store.ts";
import { findHeld } from "../support/reading.ts";

const topic = "repair/a";
const eventsOfHalf = 20;

async function publishMore(client: Client, events: Acknowledged[]): Promise<void> {
  for (let index = 0; index < eventsOfHalf; index += 1) {
    const content = `event number ${events.length} of the test`;
    events.push({ topic, content, eventId: (await client.publish(topic, content)).eventId });
  }
}

/** Flips a bit of a text wherever a file has it. */
function flipAll(file: string, text: string): void {
  changeFile(file, (bytes) => {
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) bytes[at] = (bytes[at] ?? 0) ^ 1;
  });
}

const stores = ["store.sqlite", "store.sqlite-wal"];

it("an event that is damaged in chain and store is repaired as docs/backup.md says, with the store of a backup, and nothing later is lost", async () => {
  using folder = createTempFolder();
  const path = (...names: readonly string[]): string => join(folder.path, ...names);
  const scrub = () => runStele(["scrub", "--data-dir", path("data")]);
  const events: Acknowledged[] = [];
  let subscriptionId = "";
  {
    await using broker = await startBroker({ dataDir: path("data") });
    await using client = new Client(broker.url);
    await client.open(topic);
    await publishMore(client, events);
    expect(await runStele(["backup", path("backup"), "--data-dir", path("data")])).toMatchObject({ code: 0 });
    await publishMore(client, events);
    subscriptionId = await client.subscribe({ topic, url: "http://127.0.0.1:9999/" });
    await broker.stop();
  }
  const [, damaged] = events;
  for (const name of ["chain.sqlite", "store.sqlite"]) flipAll(path("data", name), damaged?.content ?? "");
  const advice = /chain: \d+ blocks checked, 1 damaged, 0 repaired\n.*repair it with the store of a backup/;
  expect(await scrub()).toMatchObject({ code: 1, stdout: expect.stringMatching(advice) });
  {
    // Leaves a log beside the store, which must not be applied to the other store.
    await using broker = await startBroker({ dataDir: path("data") });
    await using client = new Client(broker.url);
    expect((await findHeld(client, events)).damaged).toEqual([damaged]);
    await broker.kill();
  }

  for (const name of stores) renameSync(path("data", name), path(name));
  copyFileSync(path("backup", "store.sqlite"), path("data", "store.sqlite"));
  expect(await scrub()).toMatchObject({
    stdout: expect.stringMatching(/chain: \d+ blocks checked, 1 damaged, 1 repaired/),
  });
  rmSync(path("data", "store.sqlite"));
  for (const name of stores) renameSync(path(name), path("data", name));
  expect(await scrub()).toMatchObject({
    stdout: expect.stringMatching(/index: \d+ batches checked, 1 damaged, 1 repaired/),
  });

  await using broker = await startBroker({ dataDir: path("data") });
  await using client = new Client(broker.url);
  expect(await findHeld(client, events)).toMatchObject({ found: { length: events.length }, damaged: [] });
  const proof = await client.http.send({ method: "GET", path: `/rest/proof?eventId=${damaged?.eventId}` });
  expect(proof.json()).toMatchObject({ registry: expect.any(String) });
  expect(await client.findSubscription(subscriptionId)).toBeDefined();
});
