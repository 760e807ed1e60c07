import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RunningServer, startServer } from "./start-server.ts";
import { loadConfig } from "../config/load-config.ts";
import { silentLogger } from "../lib/logger.ts";
import { checksumOfBytes } from "../lib/bytes-checksum.ts";
import { checksumOfRow } from "../store/sql/row-checksums.ts";
import { createSqliteBackend } from "../store/sql/sqlite/sqlite-backend.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-proof-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function start(): Promise<RunningServer> {
  const env = { STELE_PORT: "0", STELE_DATA_DIR: folder };
  const outcome = loadConfig({ env, argv: [], readFile: () => "", version: "test" });
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  return startServer(outcome.config, { logger: silentLogger, secrets: outcome.secrets });
}

async function call({ url }: RunningServer, path: string): Promise<Record<string, unknown>> {
  return (await (await fetch(`${url}/rest/${path}`)).json()) as Record<string, unknown>; // The operations that the test calls answer with objects.
}

/** Changes an event's content and all its checksums, so that only the chain can refute it. */
async function forge(content: string, forged: string): Promise<void> {
  const store = await createSqliteBackend(join(folder, "store.sqlite")).open();
  const row = await store.durable
    .selectFrom("batches")
    .innerJoin("topics", "topics.topic_id", "batches.topic_id")
    .selectAll("batches")
    .select("topics.name")
    .executeTakeFirstOrThrow();
  const events = Buffer.from(row.events);
  events.write(forged, events.indexOf(content));
  const { name, ...batch } = row;
  const changed = { ...batch, events, events_checksum: checksumOfBytes(events) };
  const checksum = checksumOfRow("batches", changed, name);
  await store.durable
    .updateTable("batches")
    .set({ ...changed, checksum })
    .execute();
  await store.close();
}

it("returns no proof of an event whose content and checksums were both forged in the index", async () => {
  const first = await start();
  await call(first, "open?topic=t");
  const { eventId } = await call(first, "publish?topic=t&content=truth");
  expect(await call(first, `proof?eventId=${String(eventId)}`)).toMatchObject({ version: 1 });
  await first.stop();
  await forge("truth", "false");
  const second = await start();
  const event = await call(second, `getEvent?eventId=${String(eventId)}`);
  expect(Buffer.from(String(event.content), "base64").toString()).toBe("false");
  expect(await call(second, `proof?eventId=${String(eventId)}`)).toMatchObject({ code: 200208 });
  await second.stop();
});
