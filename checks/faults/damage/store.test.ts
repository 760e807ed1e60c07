import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Client } from "../../harness/client.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { until } from "../../harness/until.ts";
import type { Acknowledged } from "../support/acknowledged.ts";
import { runStatement } from "../support/damaged-pair.ts";
import {
  chainOf,
  changeFile,
  deleteStore,
  fillFolder,
  type FilledFolder,
  placeOfText,
  storeOf,
} from "../support/damaged-store.ts";
import { type LogLine, startLocalBroker } from "../support/local-broker.ts";
import { findHeld } from "../support/reading.ts";
import { replayAll } from "../support/replay.ts";

const indexDamaged = 200208;
const eventsTotal = 240;

let filled: FilledFolder;
let log: LogLine[];
beforeAll(async () => {
  filled = await fillFolder(eventsTotal);
});
beforeEach(() => {
  log = [];
});
afterAll(() => filled[Symbol.dispose]());

describe("a damaged store", () => {
  it("a flipped bit in a batch of the store: the broker answers from the chain, logs the damage, and repairs the store", async () => {
    using folder = filled.copy();
    const event = pick(filled, 30);
    changeFile(storeOf(folder), (bytes) => flipAt(bytes, placeOfText(bytes, event.content) + 2));
    await using broker = await startLocalBroker({ dataDir: folder.path, log });
    await using client = new Client(broker.url);
    expect(await findHeld(client, [event])).toMatchObject({ found: [event] });
    expect(linesOf("index damaged, repaired from the chain")).toMatchObject([
      { topic: event.topic, blockNumber: Number(event.eventId.split("-")[2]), level: "warn" },
    ]);
    const metrics = await client.http.send({ method: "GET", path: "/metrics" });
    expect(metrics.text).toMatch(/^stele_index_damaged_total\{group="1",outcome="mended"\} 1$/m);
    await broker.stop();
    expect(readFileSync(storeOf(folder)).includes(event.content)).toBe(true);
  });

  it("a flipped bit in a batch that no call reads: scrubbing finds and repairs the batch", async () => {
    using folder = filled.copy();
    const event = pick(filled, 30);
    changeFile(storeOf(folder), (bytes) => flipAt(bytes, placeOfText(bytes, event.content) + 2));
    const env = { STELE_SCRUB_PERIOD_MS: "200", STELE_LOG_LEVEL: "info" };
    await using _broker = await startLocalBroker({ dataDir: folder.path, log, env });
    await until("a round of the index has ended", () => linesOf("scrubbed").some(({ part }) => part === "index"));
    expect(linesOf("index damaged, repaired from the chain")).toMatchObject([{ topic: event.topic }]);
  });

  it("a flipped bit in a batch of the store: the broker delivers the correct events", async () => {
    using folder = filled.copy();
    const event = pick(filled, eventsTotal - 10);
    changeFile(storeOf(folder), (bytes) => flipAt(bytes, placeOfText(bytes, event.content) + 2));
    await using broker = await startLocalBroker({ dataDir: folder.path, log });
    await using client = new Client(broker.url);
    const delivered = (await replayAll(client)).map(({ topic, eventId, content }) => {
      return { topic, eventId, content: Buffer.from(content, "base64").toString() };
    });
    expect(delivered).toHaveLength(eventsTotal);
    expect(delivered).toEqual(expect.arrayContaining([...filled.events]));
    expect(await client.isReady()).toBe(true);
  });

  it.each(["#", "damage/a"])(
    "a wrong position in a batch's row: the count of waiting events of a subscription to %s is still correct",
    async (topic) => {
      using folder = filled.copy();
      const count = async (): Promise<string | undefined> => {
        const env = { STELE_DELIVERIES: "paused" };
        await using broker = await startLocalBroker({ dataDir: folder.path, log, env });
        await using client = new Client(broker.url);
        await using receiver = await startReceiver();
        const offset = "OFFSET_FIRST";
        const subscriptionId = await client.subscribe({ topic, url: receiver.url, offset });
        const found = await client.findSubscription(subscriptionId);
        await client.unSubscribe(subscriptionId);
        return found?.notifyingEventCount;
      };
      const whole = await count();
      expect(Number(whole)).toBeGreaterThan(0);
      const first = "(select min(ordinal) from batches where topic_id = 1)";
      runStatement(
        storeOf(folder),
        `update batches set events_before = events_before + 1, first_position = first_position - 1 where ordinal = ${first}`,
      );
      expect(await count()).toBe(whole);
    },
  );

  it("a flipped bit in a batch of the store: the broker proves the batch's events", async () => {
    using folder = filled.copy();
    const event = pick(filled, 30);
    changeFile(storeOf(folder), (bytes) => flipAt(bytes, placeOfText(bytes, event.content) + 2));
    await using broker = await startLocalBroker({ dataDir: folder.path, log });
    await using client = new Client(broker.url);
    const answer = await client.http.send({ method: "GET", path: `/rest/proof?eventId=${event.eventId}` });
    const { event: proven } = answer.json() as { event: { content: string } }; // Another check tests the shape.
    expect(Buffer.from(proven.content.slice(2), "hex").toString()).toBe(event.content);
  });

  it("a flipped bit in a cursor: the broker names the subscription, and is not ready until the subscription is removed", async () => {
    using folder = filled.copy();
    const { subscriptionId } = filled;
    changeFile(storeOf(folder), (bytes) => flipCursor(bytes, subscriptionId));
    await using broker = await startLocalBroker({ dataDir: folder.path, log });
    await using client = new Client(broker.url);
    await using receiver = await startReceiver();
    expect(await client.isReady()).toBe(false);
    expect(await client.listGroupFailures()).toEqual([expect.stringContaining(subscriptionId)]);
    const again = client.subscribe({ topic: "#", url: receiver.url, subscriptionId });
    await expect(again).rejects.toMatchObject({ code: indexDamaged });
    await client.unSubscribe(subscriptionId);
    expect(await client.isReady()).toBe(true);
  });
});

describe("a damaged embedded chain", () => {
  it("a flipped bit in a block of the chain, and no store to restore it from: the start fails, names the block and a remedy, and changes nothing", async () => {
    using folder = filled.copy();
    const event = pick(filled, 30);
    changeFile(chainOf(folder), (bytes) => flipAt(bytes, placeOfText(bytes, event.content) + 2));
    deleteStore(folder);
    const before = readFileSync(chainOf(folder));
    const [, , block] = event.eventId.split("-");
    await expect(startLocalBroker({ dataDir: folder.path, log })).rejects.toThrow(
      new RegExp(`chain\\.sqlite is damaged: Block ${block} .*restore the data folder from a backup`),
    );
    expect(readFileSync(chainOf(folder)).equals(before)).toBe(true);
  });
});

/** The log lines with this message. */
function linesOf(message: string): readonly LogLine[] {
  return log.filter((line) => line["message"] === message);
}

function pick({ events }: FilledFolder, index: number): Acknowledged {
  const event = events[index];
  if (event === undefined) throw new Error("the folder has too few events");
  return event;
}

function flipAt(bytes: Buffer, at: number): void {
  bytes[at] = (bytes[at] ?? 0) ^ 1;
}

/** Flips a bit of the subscription's cursor, which follows the state in the row. */
function flipCursor(bytes: Buffer, id: string): void {
  for (let at = bytes.indexOf(id); at >= 0; at = bytes.indexOf(id, at + 1)) {
    const state = bytes.indexOf("active", at);
    if (state > 0 && state - at < 200) {
      flipAt(bytes, state + "active".length + 2);
      return;
    }
  }
  throw new Error("the file does not hold the subscription");
}
