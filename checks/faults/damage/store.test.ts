import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BrokerProcess, type EndedRun, runBroker, startBroker } from "../../harness/broker-process.ts";
import { CallFailed, Client } from "../../harness/client.ts";
import { createRandom, seedsOf } from "../../harness/random.ts";
import { startReceiver } from "../../harness/receiver.ts";
import type { TempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import {
  type Acknowledged,
  changeFile,
  fillFolder,
  type FilledFolder,
  flipBits,
  logLines,
  placeOfText,
  spoilPage,
  storeOf,
} from "../support/damaged-store.ts";

const unknown = 200000;
const indexDamaged = 200208;
const eventsTotal = 240;
const damagedSaid = /^stele: store \S+store\.sqlite .*damaged.*start/m;

describe("a store that is damaged (issue: Integrity)", () => {
  let filled: FilledFolder;
  beforeAll(async () => {
    filled = await fillFolder(eventsTotal);
  });
  afterAll(() => filled[Symbol.dispose]());

  it("gives a batch with a flipped bit as the chain has it, says so, and has it right from then on", async () => {
    using folder = filled.copy();
    const event = pick(filled, 30);
    changeFile(storeOf(folder), (bytes) => flipAt(bytes, placeOfText(bytes, event.content) + 2));
    await using broker = await startBroker({ dataDir: folder.path });
    await using client = new Client(broker.url);
    expect(await contentOf(client, event)).toBe(event.content);
    expect(logLines(broker, "index damaged, mended from the chain")).toMatchObject([
      { topic: event.topic, blockNumber: Number(event.eventId.split("-")[2]), level: "warn" },
    ]);
    const metrics = await client.http.send({ method: "GET", path: "/metrics" });
    expect(metrics.text).toMatch(/^stele_index_damaged_total\{group="1",outcome="mended"\} 1$/m);
    expect((await broker.stop()).code).toBe(0);
    expect(readFileSync(storeOf(folder)).includes(event.content)).toBe(true);
  });

  it("finds and mends by scrubbing what nobody asks for", async () => {
    using folder = filled.copy();
    const event = pick(filled, 30);
    changeFile(storeOf(folder), (bytes) => flipAt(bytes, placeOfText(bytes, event.content) + 2));
    await using broker = await startBroker({ dataDir: folder.path, env: { STELE_SCRUB_PERIOD_MS: "200" } });
    await until("a round has ended", () => logLines(broker, "scrubbed")[0]);
    expect(logLines(broker, "index damaged, mended from the chain")).toMatchObject([{ topic: event.topic }]);
  });

  it("delivers the batch with a flipped bit right", async () => {
    using folder = filled.copy();
    const event = pick(filled, eventsTotal - 10);
    changeFile(storeOf(folder), (bytes) => flipAt(bytes, placeOfText(bytes, event.content) + 2));
    await using broker = await startBroker({ dataDir: folder.path });
    await using client = new Client(broker.url);
    expect(await replayed(client, eventsTotal)).toEqual(expectedReplay(filled));
    expect(await client.isReady()).toBe(true);
  });

  it("proves an event whose batch has a flipped bit", async () => {
    using folder = filled.copy();
    const event = pick(filled, 30);
    changeFile(storeOf(folder), (bytes) => flipAt(bytes, placeOfText(bytes, event.content) + 2));
    await using broker = await startBroker({ dataDir: folder.path });
    await using client = new Client(broker.url);
    const answer = await client.http.send({ method: "GET", path: `/rest/proof?eventId=${event.eventId}` });
    const { event: proven } = answer.json() as { event: { content: string } }; // The shape is held by a check of its own.
    expect(Buffer.from(proven.content.slice(2), "hex").toString()).toBe(event.content);
  });

  it("does not deliver a subscription whose cursor has a flipped bit, and says which and what to do", async () => {
    using folder = filled.copy();
    const { subscriptionId } = filled;
    changeFile(storeOf(folder), (bytes) => flipProgress(bytes, subscriptionId));
    await using broker = await startBroker({ dataDir: folder.path });
    await using client = new Client(broker.url);
    await using receiver = await startReceiver();
    expect(await client.isReady()).toBe(false);
    expect(await client.listGroupFailures()).toEqual([expect.stringContaining(subscriptionId)]);
    const again = client.subscribe({ topic: "#", url: receiver.url, subscriptionId });
    await expect(again).rejects.toMatchObject({ code: indexDamaged });
    await client.unSubscribe(subscriptionId);
    expect(await client.isReady()).toBe(true);
  });

  it("ends the broker, with what to do, when a page that is delivered from is damaged", async () => {
    using undamaged = filled.copy();
    const pages = readFileSync(storeOf(undamaged)).length / 4096;
    let ended = 0;
    for (let page = 2; page < pages; page += Math.ceil(pages / 8)) {
      using folder = filled.copy();
      spoilPage(storeOf(folder), page);
      const outcome = await runUntilSettled(folder, filled);
      expect(`page ${page}: ${outcome}`).toMatch(/right|ended/);
      if (outcome === "ended") ended += 1;
    }
    expect(ended).toBeGreaterThan(0);
  });

  it.each(seedsOf("CHECKS_DAMAGE_SEEDS", [1, 2, 3, 4, 5, 6]))(
    "with any bits flipped answers right, or says that it is damaged (seed %i)",
    async (seed) => {
      const random = createRandom(seed);
      using folder = filled.copy();
      flipBits(storeOf(folder), { count: 1 + random.below(20), random });
      expect(await runUntilSettled(folder, filled)).toMatch(/right|ended/);
    },
  );
});

/** Starts the broker and asks it everything. Answers "right", "ended" with what to do, or what was wrong. */
async function runUntilSettled(folder: TempFolder, filled: FilledFolder): Promise<string> {
  const options = { dataDir: folder.path };
  let broker: BrokerProcess;
  try {
    broker = await startBroker(options);
  } catch (error) {
    return toEnding(await runBroker(options), error);
  }
  try {
    await using client = new Client(broker.url);
    return await Promise.race([askAll(client, filled), broker.exited.then(() => toEndingOf(broker))]);
  } catch (error) {
    const exit = await Promise.race([broker.exited, until("it fails", () => undefined, { timeoutMs: 5_000 })]).catch(
      () => undefined,
    );
    return exit === undefined ? `failed: ${String(error)}` : toEndingOf(broker);
  } finally {
    await broker.kill();
  }
}

/** Every answer is right or says that it is damaged; what cannot be delivered makes the broker not ready. */
async function askAll(client: Client, filled: FilledFolder): Promise<string> {
  for (const event of filled.events) {
    const content = await contentOf(client, event);
    // A broker that is ending cannot say more.
    if (content === unknown) throw new Error(`${event.eventId} fails with ${unknown}`);
    if (content !== event.content && content !== indexDamaged) return `wrong: ${event.eventId} is ${content}`;
  }
  const isStuck = async (): Promise<boolean> => !(await client.isReady());
  const events = await replayed(client, eventsTotal, isStuck);
  if (events === undefined) return "right";
  return JSON.stringify(events) === JSON.stringify(expectedReplay(filled)) ? "right" : "delivered something else";
}

function toEnding({ code, stderr }: EndedRun, error: unknown): string {
  return code === 1 && damagedSaid.test(stderr) ? "ended" : `ended without a remedy: ${String(error)}`;
}

function toEndingOf(broker: BrokerProcess): string {
  return damagedSaid.test(broker.stderr()) ? "ended" : `ended without a remedy: ${broker.stderr()}`;
}

/** The content, or the code of the failure. */
async function contentOf(client: Client, { eventId }: Acknowledged): Promise<string | number> {
  try {
    return Buffer.from((await client.getEvent(eventId)).content, "base64").toString();
  } catch (error) {
    if (error instanceof CallFailed) return error.code;
    throw error;
  }
}

/** Contents by topic as a new subscription is given them; undefined once `isStuck`. */
async function replayed(
  client: Client,
  count: number,
  isStuck: () => Promise<boolean> = async () => false,
): Promise<Readonly<Record<string, readonly string[]>> | undefined> {
  await using receiver = await startReceiver();
  const subscriptionId = await client.subscribe({ topic: "#", url: receiver.url, offset: "OFFSET_FIRST" });
  const outcome = await until("everything is delivered, or the broker says why not", async () => {
    if (receiver.accepted().length >= count) return "delivered";
    return (await isStuck()) ? "stuck" : undefined;
  });
  if (outcome === "stuck") return undefined;
  await client.unSubscribe(subscriptionId);
  return byTopic(receiver.accepted().map((event) => ({ ...event, content: decoded(event.content) })));
}

function decoded(content: string): string {
  return Buffer.from(content, "base64").toString();
}

function expectedReplay({ events }: FilledFolder): Readonly<Record<string, readonly string[]>> {
  return byTopic(events.toSorted((left, right) => sequenceOf(left) - sequenceOf(right)));
}

function sequenceOf({ eventId }: Acknowledged): number {
  return Number(eventId.split("-")[1]);
}

function byTopic(events: readonly Pick<Acknowledged, "topic" | "content">[]): Record<string, string[]> {
  const topics = [...new Set(events.map(({ topic }) => topic))].toSorted();
  return Object.fromEntries(
    topics.map((topic) => [topic, events.filter((event) => event.topic === topic).map(({ content }) => content)]),
  );
}

function pick({ events }: FilledFolder, index: number): Acknowledged {
  const event = events[index];
  if (event === undefined) throw new Error("there are not so many events");
  return event;
}

function flipAt(bytes: Buffer, at: number): void {
  bytes[at] = (bytes[at] ?? 0) ^ 1;
}

/** The row has its state, and then its cursor, after the url. */
function flipProgress(bytes: Buffer, id: string): void {
  for (let at = bytes.indexOf(id); at >= 0; at = bytes.indexOf(id, at + 1)) {
    const state = bytes.indexOf("active", at);
    if (state > 0 && state - at < 200) {
      flipAt(bytes, state + "active".length + 2);
      return;
    }
  }
  throw new Error("the file does not hold the subscription");
}
