import { copyFileSync, existsSync, renameSync } from "node:fs";
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

/** Flips a bit of a text wherever a database or its log has it. */
function flipAll(file: string, text: string): void {
  for (const path of [file, `${file}-wal`].filter((one) => existsSync(one))) {
    changeFile(path, (bytes) => {
      for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) bytes[at] = (bytes[at] ?? 0) ^ 1;
    });
  }
}

it("an event that is damaged in chain and store is repaired as docs/backup.md says, with the store of a backup, and no later event is lost", async () => {
  using folder = createTempFolder();
  const path = (...names: readonly string[]): string => join(folder.path, ...names);
  const events: Acknowledged[] = [];
  await using broker = await startBroker({ dataDir: path("data") });
  await using client = new Client(broker.url);
  await client.open(topic);
  await publishMore(client, events);
  expect(await runStele(["backup", path("backup"), "--data-dir", path("data")])).toMatchObject({ code: 0 });
  await publishMore(client, events);
  await broker.kill();
  const [, damaged] = events;
  for (const name of ["chain.sqlite", "store.sqlite"]) flipAll(path("data", name), damaged?.content ?? "");

  const found = await runStele(["scrub", "--data-dir", path("data")]);
  expect(found).toMatchObject({ code: 1, stdout: expect.stringMatching(/replace store\.sqlite by that of a backup/) });
  // This broker leaves a log beside the store, which must not be applied to the other store.
  await using again = await startBroker({ dataDir: path("data") });
  await using client2 = new Client(again.url);
  expect((await findHeld(client2, events)).damaged).toEqual([damaged]);
  await again.kill();

  for (const name of ["store.sqlite", "store.sqlite-wal"]) renameSync(path("data", name), path(name));
  copyFileSync(path("backup", "store.sqlite"), path("data", "store.sqlite"));
  const repaired = await runStele(["scrub", "--data-dir", path("data")]);
  expect(repaired).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/chain: \d+ blocks checked, 1 damaged, 1 mended/),
  });
  await using third = await startBroker({ dataDir: path("data") });
  await using client3 = new Client(third.url);
  expect(await findHeld(client3, events)).toMatchObject({ found: { length: events.length }, damaged: [] });
  const proof = await client3.http.send({ method: "GET", path: `/rest/proof?eventId=${damaged?.eventId}` });
  expect(proof.json()).toMatchObject({ registry: expect.any(String) });
});
