import { type BrokerProcess, type EndedRun, runBroker, startBroker } from "../../harness/broker-process.ts";
import { CallFailed, Client } from "../../harness/client.ts";
import { startReceiver } from "../../harness/receiver.ts";
import type { TempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import type { Acknowledged, FilledFolder } from "./damaged-store.ts";

const unknown = 200000;
const indexDamaged = 200208;

/** Starts the broker and asks it everything. Answers "right", "ended" with what to do (which `remedy` finds), or what was wrong. */
export async function runUntilSettled(folder: TempFolder, filled: FilledFolder, remedy: RegExp): Promise<string> {
  const options = { dataDir: folder.path };
  let broker: BrokerProcess;
  try {
    broker = await startBroker(options);
  } catch (error) {
    return toEnding(await runBroker(options), { error, remedy });
  }
  try {
    await using client = new Client(broker.url);
    return await Promise.race([askAll(client, filled), broker.exited.then(() => toEndingOf(broker, remedy))]);
  } catch (error) {
    const exit = await Promise.race([broker.exited, until("it fails", () => undefined, { timeoutMs: 5_000 })]).catch(
      () => undefined,
    );
    return exit === undefined ? `failed: ${String(error)}` : toEndingOf(broker, remedy);
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
  const events = await replayed(client, filled.events.length, isStuck);
  if (events === undefined) return "right";
  return JSON.stringify(events) === JSON.stringify(expectedReplay(filled)) ? "right" : "delivered something else";
}

function toEnding({ code, stderr }: EndedRun, { error, remedy }: { error: unknown; remedy: RegExp }): string {
  return code === 1 && remedy.test(stderr) ? "ended" : `ended without a remedy: ${String(error)}`;
}

function toEndingOf(broker: BrokerProcess, remedy: RegExp): string {
  return remedy.test(broker.stderr()) ? "ended" : `ended without a remedy: ${broker.stderr()}`;
}

/** The content, or the code of the failure. */
export async function contentOf(client: Client, { eventId }: Acknowledged): Promise<string | number> {
  try {
    return Buffer.from((await client.getEvent(eventId)).content, "base64").toString();
  } catch (error) {
    if (error instanceof CallFailed) return error.code;
    throw error;
  }
}

/** Contents by topic as a new subscription is given them; undefined once `isStuck`. */
export async function replayed(
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

/** What it is to be given. */
export function expectedReplay({ events }: FilledFolder): Readonly<Record<string, readonly string[]>> {
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
