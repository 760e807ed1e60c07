import { expect } from "vitest";
import type { Client, EventBody } from "../../harness/client.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { until } from "../../harness/until.ts";
import type { PublishRecord } from "./publish-record.ts";

const steadyMs = 3000;

/** All events of the default group, as a new subscription to `#` gets them from the first event on. */
export async function replayAll(client: Client): Promise<readonly EventBody[]> {
  const total = await countEvents(client);
  await using receiver = await startReceiver();
  const subscriptionId = await client.subscribe({ topic: "#", url: receiver.url, offset: "OFFSET_FIRST" });
  const events = [...(await receiver.waitForCount(total, { timeoutMs: 60_000 }))];
  await client.unSubscribe(subscriptionId);
  expect(events).toHaveLength(total);
  return events;
}

export async function listTopics(client: Client): Promise<readonly string[]> {
  const names: string[] = [];
  for (let pageIndex = 0; ; pageIndex += 1) {
    const { topicInfoList } = await client.list(pageIndex, 99);
    if (topicInfoList.length === 0) return names;
    names.push(...topicInfoList.map(({ topicName }) => topicName));
  }
}

/** Waits until no new event has come for a while. By then the chain has mined all transactions of killed brokers. */
export async function untilSteady(client: Client): Promise<void> {
  let count = -1;
  let since = performance.now();
  const isSteady = async (): Promise<boolean> => {
    const now = await countEvents(client);
    if (now !== count) since = performance.now();
    count = now;
    return performance.now() - since > steadyMs;
  };
  await until("no more events come", isSteady, { timeoutMs: 60_000 });
}

/** Waits until these subscriptions have delivered all their events. */
export async function untilNotified(client: Client, ids: readonly string[]): Promise<void> {
  const isNotified = async (): Promise<boolean> => {
    const entries = Object.values(await client.listSubscriptions()).flatMap((node) => Object.values(node));
    return ids.every((id) =>
      entries.some(({ subscribeId, notifyingEventCount }) => subscribeId === id && notifyingEventCount === "0"),
    );
  };
  await until("the given subscriptions have caught up", isNotified, { timeoutMs: 90_000 });
}

async function countEvents(client: Client): Promise<number> {
  let count = 0;
  for (const topic of await listTopics(client)) count += (await client.state(topic)).sequenceNumber;
  return count;
}

/** Sequence number and block number of an eventId. */
export function placeOf(eventId: string): { readonly sequence: number; readonly blockNumber: number } {
  const [, sequence, blockNumber] = eventId.split("-").map(Number);
  return { sequence: sequence ?? Number.NaN, blockNumber: blockNumber ?? Number.NaN };
}

/**
 * Checks three things. Each topic's events in `events` have the sequences 1…n, in this order. The broker returns n as the topic's `sequenceNumber`. Block
 * numbers never decrease.
 */
export async function expectGaplessSequences(client: Client, events: readonly EventBody[]): Promise<void> {
  const counts = new Map<string, number>();
  let block = 0;
  for (const { topic, eventId } of events) {
    const { sequence, blockNumber } = placeOf(eventId);
    expect(`${topic}: ${sequence}`).toBe(`${topic}: ${(counts.get(topic) ?? 0) + 1}`);
    expect(blockNumber).toBeGreaterThanOrEqual(block);
    counts.set(topic, sequence);
    block = blockNumber;
  }
  for (const topic of await listTopics(client)) {
    expect(`${topic}: ${(await client.state(topic)).sequenceNumber}`).toBe(`${topic}: ${counts.get(topic) ?? 0}`);
  }
}

/** Checks three things. Each of `events` was sent to its topic. No content occurs twice. `events` has each acknowledged event, under its eventId. */
export function expectMatchesLoad(events: readonly EventBody[], load: PublishRecord): void {
  const contents = new Map<string, EventBody>();
  for (const event of events) {
    const content = Buffer.from(event.content, "base64").toString();
    expect(load.sent.get(content)?.topic).toBe(event.topic);
    expect(contents.get(content)).toBeUndefined();
    contents.set(content, event);
  }
  for (const { content, eventId } of load.acknowledged.values()) {
    expect(`${content}: ${contents.get(content)?.eventId}`).toBe(`${content}: ${eventId}`);
  }
}

/** Checks that getEvent finds each acknowledged event with its content. */
export async function expectFound(
  client: Client,
  acknowledged: Iterable<{ readonly eventId: string; readonly topic: string; readonly content: string }>,
): Promise<void> {
  const queue = [...acknowledged].values();
  const worker = async (): Promise<void> => {
    for (const { eventId, topic, content } of queue) {
      const event = await client.getEvent(eventId);
      expect(event).toEqual({ eventId, topic, content: Buffer.from(content).toString("base64"), extensions: {} });
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}
