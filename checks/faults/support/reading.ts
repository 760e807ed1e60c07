import { portableKeccak256 } from "@stele/eth";
import { checkProof, verifyProof } from "@stele/wire";
import { CallFailed, type Client, type EventBody } from "../../harness/client.ts";
import type { HttpSender } from "../../harness/http-client.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { until } from "../../harness/until.ts";
import type { Acknowledged, Promised } from "./acknowledged.ts";
import { placeOf } from "./replay.ts";

/** An answer that no fault excuses. */
export class Wrong extends Error {}

/** The broker is not ready, and says why. */
export class NotReady extends Error {}

/** The acknowledged events, grouped by the answer of getEvent. */
export interface Held {
  readonly found: readonly Acknowledged[];
  /** The broker says that the event does not exist. */
  readonly missing: readonly Acknowledged[];
  /** The broker says that the event is damaged. */
  readonly damaged: readonly Acknowledged[];
}

/** The topic or the event does not exist, or the event is beyond the end of the chain. */
const missingCodes: ReadonlySet<number> = new Set([100_101, 100_303, 100_304]);
const indexDamaged = 200_208;
const proofRefused: ReadonlySet<number> = new Set([200_206, indexDamaged]);
const callsAtOnce = 16;
const proofsMax = 8;

/** Asks for every acknowledged event. @throws Wrong if an answer has another topic or content. */
export async function findHeld(client: Client, events: readonly Acknowledged[]): Promise<Held> {
  const held = { found: [] as Acknowledged[], missing: [] as Acknowledged[], damaged: [] as Acknowledged[] };
  const queue = events.values();
  const worker = async (): Promise<void> => {
    for (const event of queue) held[await askFor(client, event)].push(event);
  };
  await Promise.all(Array.from({ length: callsAtOnce }, worker));
  return held;
}

async function askFor(client: Client, event: Acknowledged): Promise<keyof Held> {
  try {
    const { content, topic, eventId } = await client.getEvent(event.eventId);
    const answered = { topic, eventId, content: decoded(content) };
    if (!isSame(answered, event)) throw new Wrong(`${JSON.stringify(event)} is answered ${JSON.stringify(answered)}`);
    return "found";
  } catch (error) {
    if (!(error instanceof CallFailed)) throw error;
    if (missingCodes.has(error.code)) return "missing";
    if (error.code === indexDamaged) return "damaged";
    throw error;
  }
}

function isSame(left: Acknowledged, right: Acknowledged): boolean {
  return left.topic === right.topic && left.eventId === right.eventId && left.content === right.content;
}

function decoded(content: string): string {
  return Buffer.from(content, "base64").toString();
}

/**
 * Publishes to every topic. Then checks what two subscriptions receive: a new one from the first event on, and the one made before the fault.
 * Both must agree with the acknowledged events, and with each other.
 * @throws Wrong; NotReady as soon as the broker is not ready.
 */
export async function expectDelivered(client: Client, promised: Promised, options: DeliveryOptions): Promise<void> {
  await using first = await startReceiver();
  await using further = await startReceiver();
  await client.subscribe({ topic: "#", url: first.url, offset: "OFFSET_FIRST" });
  const { subscriptionId, lateSubscriptionId } = promised;
  const isThere = subscriptionId !== undefined && (await resume(client, { subscriptionId, url: further.url }));
  if (!options.mayForgetSubscriptions) {
    if (subscriptionId !== undefined && !isThere) throw new Wrong("the subscription is gone");
    if (lateSubscriptionId !== undefined && (await client.findSubscription(lateSubscriptionId)) === undefined) {
      throw new Wrong("the later subscription is gone");
    }
  }
  const published: Acknowledged[] = [];
  for (const topic of options.topics) published.push(await publishNext(client, topic));
  const total = published.reduce((sum, { eventId }) => sum + placeOf(eventId).sequence, 0);
  const newest = new Set(published.map(({ eventId }) => eventId));
  const isDone = (events: readonly EventBody[]): boolean =>
    events.filter(({ eventId }) => newest.has(eventId)).length >= newest.size;
  await until(`${total} events are delivered, or the broker is not ready`, async () => {
    if (first.accepted().length >= total && (!isThere || isDone(further.accepted()))) return true;
    await expectReady(client);
    return false;
  });
  const events = first.accepted();
  expectInOrder(events, promised, published);
  expectPromised(events, [...options.held, ...published]);
  if (isThere) expectContinued(further.accepted(), { events, delivered: promised.delivered });
}

export interface DeliveryOptions {
  /** Topics that must exist. */
  readonly topics: readonly string[];
  /** Events that must arrive. */
  readonly held: readonly Acknowledged[];
  /** Whether the fault hit the store, which alone knows the subscriptions. */
  readonly mayForgetSubscriptions: boolean;
}

/** Resumes the subscription. Returns false if the broker no longer has it: subscribing would create a new one. */
async function resume(
  client: Client,
  { subscriptionId, url }: { readonly subscriptionId: string; readonly url: string },
): Promise<boolean> {
  if ((await client.findSubscription(subscriptionId)) === undefined) return false;
  try {
    await client.subscribe({ topic: "#", url, subscriptionId });
  } catch (error) {
    if (error instanceof CallFailed && error.code === indexDamaged) await expectReady(client);
    throw error;
  }
  return true;
}

/** Publishes one event. @throws Wrong if the event does not get the topic's next sequence number. */
async function publishNext(client: Client, topic: string): Promise<Acknowledged> {
  const content = `after the fault on ${topic}`;
  const before = await client.state(topic);
  const { eventId } = await client.publish(topic, content);
  const { sequence } = placeOf(eventId);
  if (sequence !== before.sequenceNumber + 1) {
    throw new Wrong(`event ${sequence} of ${topic} was published after event ${before.sequenceNumber}`);
  }
  return { topic, content, eventId };
}

/** @throws NotReady with the reasons that health gives. */
export async function expectReady(client: Client): Promise<void> {
  if (await client.isReady()) return;
  throw new NotReady((await client.listGroupFailures()).join("; "));
}

/** Checks that the sequences of each topic are 1, 2, 3 …, that block numbers never go back, and that each event was sent and arrives once. */
function expectInOrder(events: readonly EventBody[], { sent }: Promised, published: readonly Acknowledged[]): void {
  const topicOf = new Map([...sent, ...published.map(({ content, topic }) => [content, topic] as const)]);
  const counts = new Map<string, number>();
  let block = 0;
  for (const { topic, eventId, content } of events) {
    const { sequence, blockNumber } = placeOf(eventId);
    const due = (counts.get(topic) ?? 0) + 1;
    if (sequence !== due) throw new Wrong(`event ${eventId} of ${topic} was delivered where ${due} was due`);
    if (blockNumber < block) throw new Wrong(`event ${eventId} was delivered after one of block ${block}`);
    if (topicOf.get(decoded(content)) !== topic)
      throw new Wrong(`nobody sent ${eventId} to ${topic}, or it came twice`);
    topicOf.delete(decoded(content));
    counts.set(topic, sequence);
    block = blockNumber;
  }
}

function expectPromised(events: readonly EventBody[], held: readonly Acknowledged[]): void {
  const byId = new Map(events.map((event) => [event.eventId, { ...event, content: decoded(event.content) }]));
  for (const event of held) {
    const delivered = byId.get(event.eventId);
    if (delivered === undefined) throw new Wrong(`${event.eventId} was not delivered`);
    if (!isSame(delivered, event)) throw new Wrong(`${event.eventId} was delivered with another content`);
  }
}

/** Checks that `given` are the last of all events, and that no event is missing between `delivered` and `given`. */
function expectContinued(
  given: readonly EventBody[],
  { events, delivered }: { readonly events: readonly EventBody[]; readonly delivered: ReadonlySet<string> },
): void {
  const ids = events.map(({ eventId }) => eventId);
  const from = ids.indexOf(given[0]?.eventId ?? "");
  const last = ids.findLastIndex((eventId) => delivered.has(eventId));
  const isEnd = ids.slice(from).join() === given.map(({ eventId }) => eventId).join();
  if (from < 0 || !isEnd) throw new Wrong("the subscription did not get each event once, in order, up to the last");
  if (from > last + 1) throw new Wrong(`the subscription got nothing between event ${last + 1} and event ${from}`);
}

/** Checks the proofs of at most `proofsMax` events. Returns the broker's messages for refused proofs. @throws Wrong for a wrong proof. */
export async function expectProven(
  client: Client,
  { events, blockHashes }: Pick<Promised, "events" | "blockHashes">,
): Promise<readonly string[]> {
  const step = Math.ceil(events.length / proofsMax);
  const refusals: string[] = [];
  for (const event of events.filter((_, index) => index % step === 0)) {
    try {
      await expectProof(client, event, blockHashes);
    } catch (error) {
      if (!(error instanceof CallFailed) || !proofRefused.has(error.code)) throw error;
      refusals.push(error.message);
    }
  }
  return refusals;
}

async function expectProof({ http }: Client, event: Acknowledged, hashes: ReadonlyMap<number, string>): Promise<void> {
  const { proof, blockHash } = await askForProof(http, event.eventId);
  const result = verifyProof(proof, hashes.get(placeOf(event.eventId).blockNumber) ?? blockHash);
  if (result.status === "refuted") throw new Wrong(`the proof of ${event.eventId} is refuted: ${result.reason}`);
  const { topic, content, eventId } = result.event;
  if (!isSame({ topic, eventId, content: Buffer.from(content).toString() }, event)) {
    throw new Wrong(`the proof of ${event.eventId} proves another event`);
  }
}

/** Returns a proof and the hash of its block. @throws CallFailed; Wrong if the proof is malformed. */
export async function askForProof(http: HttpSender, eventId: string) {
  const answer = await http.send({ method: "GET", path: `/rest/proof?eventId=${eventId}` });
  const body = answer.json();
  const failure = body as { code?: number; message?: string }; // The fields of a REST failure.
  if (failure.code !== undefined)
    throw new CallFailed("getProof", { code: failure.code, message: String(failure.message) });
  const checked = checkProof(body);
  if (checked.status === "malformed") throw new Wrong(`the proof of ${eventId} is malformed: ${checked.reason}`);
  const { proof } = checked;
  const header = Buffer.from(proof.header.slice(2), "hex");
  return { proof, blockHash: `0x${Buffer.from(portableKeccak256(header)).toString("hex")}` };
}
