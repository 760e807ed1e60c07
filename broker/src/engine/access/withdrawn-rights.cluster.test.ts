import { afterEach, beforeEach, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import type { Attachment } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestCluster } from "../testing/test-cluster.ts";
import type { Caller } from "./caller.ts";
import { formatKeyCredential } from "./credential.ts";
import { secret, sha256 } from "../testing/key-secret.ts";
import { allOfA, rolesOfA } from "../testing/roles-of-a.ts";

const nodes = [0, 1, 2] as const;
const secondMs = 1_000;
const ids = {
  one: "1".repeat(16),
  publisher: "2".repeat(16),
  narrower: "3".repeat(16),
  stored: "4".repeat(16),
};

let cluster: TestCluster;
let keys: MemoryApiKeys;
beforeEach(async () => {
  keys = new MemoryApiKeys();
  cluster = await TestCluster.start(nodes.length, { keys: { apiKeys: keys, roles: rolesOfA, sha256 } });
  await addKey("one", "one", "all of a");
  await addKey("publisher", "publisher", "all of a");
  await cluster.clock.advance(secondMs);
  for (const topic of ["a/secret", "a/open"]) {
    await cluster.run(cluster.node(0).calls.open(await caller("publisher", 0), { topic, groupId: undefined }));
  }
});
afterEach(() => cluster.stopAll());

async function addKey(id: keyof typeof ids, principal: string, role: string): Promise<void> {
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  const key = { id: ids[id], digest: sha256(secret), principal, tenant: undefined, roles: [role], ...times };
  expect(await keys.insertApiKey(key, 10)).toBe(true);
}

async function caller(id: keyof typeof ids, node: number): Promise<Caller> {
  const credential = formatKeyCredential({ id: ids[id], secret });
  return { ...testCaller, principal: await cluster.node(node).calls.authenticate(credential, testCaller) };
}

async function publish(topic: string, text: string): Promise<void> {
  const call = { topic, groupId: undefined, content: Buffer.from(text), extensions: [] };
  cluster.node(0).calls.submit(await caller("publisher", 0), call, () => {});
  await cluster.clock.advance(secondMs);
}

/** Connects a client that gets one event at a time. */
async function connect(
  id: keyof typeof ids,
  node: number,
): Promise<{ readonly peer: RecordingPeer; readonly attachment: Attachment }> {
  const peer = new RecordingPeer();
  const request = { groupId: undefined, protocol: "MQTT", key: `c${node}`, isClean: true, windowMax: 1 } as const;
  const rest = { will: undefined, expiryMs: 60_000, onConnected: () => {} };
  const { calls } = cluster.node(node);
  const attachment = await cluster.run(calls.attach(await caller(id, node), { ...request, ...rest }, peer));
  const how = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await cluster.run(attachment.subscribe([{ ...how, filter: parseTopicFilter("a/#") }]));
  return { peer, attachment };
}

/** Subscribes at a node, with a receiver that fails. */
async function subscribe(id: keyof typeof ids, node: number): Promise<string> {
  const url = `http://receiver${node}/`;
  cluster.sink.receive(url, () => ({ status: "failed", reason: "500" }));
  const rest = { groupId: undefined, format: "RESTful", offset: undefined, secret: undefined } as const;
  const call = { ...rest, topic: "a/#", url, subscriptionId: undefined };
  await cluster.run(cluster.node(node).calls.subscribe(await caller(id, node), call));
  return url;
}

/** A connection and a subscription at each node. */
async function attachEverywhere(id: keyof typeof ids) {
  const [connected, urls] = [[], []] as [Awaited<ReturnType<typeof connect>>[], string[]];
  for (const node of nodes) {
    connected.push(await connect(id, node));
    urls.push(await subscribe(id, node));
  }
  return { connected, urls };
}

const textsOf = ({ deliveries }: RecordingPeer): readonly string[] =>
  deliveries.map(({ event }) => Buffer.from(event.content).toString());
const attemptsAt = (url: string): readonly string[] =>
  cluster.sink.attempts
    .filter(({ subscription }) => subscription.url === url)
    .map(({ event }) => Buffer.from(event.content).toString());

it("a withdrawn right takes effect at every node within a second, also for events that wait there", async () => {
  const { connected, urls } = await attachEverywhere("one");
  await publish("a/open", "1");
  await publish("a/secret", "2");
  expect(connected.map(({ peer }) => textsOf(peer))).toEqual([["1"], ["1"], ["1"]]);
  for (const url of urls) cluster.sink.receive(url, ({ event }) => toOutcome(Buffer.from(event.content).toString()));
  await cluster.clock.advance(60 * secondMs);
  for (const url of urls) expect(attemptsAt(url).at(-1)).toBe("2");
  await addKey("narrower", "one", "not secret");
  await cluster.clock.advance(secondMs);
  const before = urls.map((url) => attemptsAt(url).length);
  for (const { peer, attachment } of connected) attachment.session.acknowledge(peer.deliveries[0]?.ticket ?? 0);
  await publish("a/secret", "3");
  await publish("a/open", "4");
  await cluster.clock.advance(60 * secondMs);
  expect(connected.map(({ peer }) => textsOf(peer))).toEqual(nodes.map(() => ["1", "4"]));
  for (const [index, url] of urls.entries()) expect(attemptsAt(url).slice(before[index])).toEqual(["4"]);
});

/** The outcome of an attempt: the receiver accepts every event except "2", to whose topic the right ends. */
function toOutcome(text: string) {
  return text === "2" ? ({ status: "failed", reason: "500" } as const) : ({ status: "accepted" } as const);
}

it("revoking a key ends connections and callbacks at every node within a second", async () => {
  const { connected, urls } = await attachEverywhere("one");
  await publish("a/open", "1");
  await publish("a/open", "2");
  await keys.revokeApiKey(ids.one, cluster.clock.now());
  await cluster.clock.advance(secondMs);
  expect(connected.map(({ peer }) => peer.endedBecause)).toEqual(nodes.map(() => "refused"));
  const before = urls.map((url) => attemptsAt(url).length);
  await publish("a/open", "3");
  await cluster.clock.advance(60 * secondMs);
  expect(connected.map(({ peer }) => textsOf(peer))).toEqual(nodes.map(() => ["1"]));
  expect(urls.map((url) => attemptsAt(url).length)).toEqual(before);
});

/** Attaches a principal with a stored role to each node, where event 2 waits for a callback and for room in the session's window. */
async function attachWithRole() {
  await keys.putRole({ name: "stored", rules: [allOfA] }, 10);
  await addKey("stored", "stored", "stored");
  await cluster.clock.advance(secondMs);
  const { connected, urls } = await attachEverywhere("stored");
  const callers = await Promise.all(nodes.map((node) => caller("stored", node)));
  await publish("a/open", "1");
  await publish("a/secret", "2");
  for (const url of urls) cluster.sink.receive(url, ({ event }) => toOutcome(Buffer.from(event.content).toString()));
  await cluster.clock.advance(60 * secondMs);
  for (const url of urls) expect(attemptsAt(url).at(-1)).toBe("2");
  return { connected, urls, callers };
}

/** Expects every node to refuse a publish to the topic to which the right has ended. */
function expectRefused(callers: readonly Caller[], code: number): void {
  for (const [node, held] of callers.entries()) {
    const { calls } = cluster.node(node);
    const call = { topic: "a/secret", groupId: undefined, content: Buffer.from("x"), extensions: [] };
    expect(() => calls.submit(held, call, () => {})).toThrow(expect.objectContaining({ code }));
  }
}

it("a changed role takes effect at every node within a second, also for events that wait there", async () => {
  const { connected, urls, callers } = await attachWithRole();
  await keys.putRole({ name: "stored", rules: [{ ...allOfA, filter: "a/open" }] }, 10);
  await cluster.clock.advance(secondMs);
  const before = urls.map((url) => attemptsAt(url).length);
  expectRefused(callers, 100_702);
  for (const { peer, attachment } of connected) attachment.session.acknowledge(peer.deliveries[0]?.ticket ?? 0);
  await publish("a/secret", "3");
  await publish("a/open", "4");
  await cluster.clock.advance(60 * secondMs);
  expect(connected.map(({ peer }) => textsOf(peer))).toEqual(nodes.map(() => ["1", "4"]));
  for (const [index, url] of urls.entries()) expect(attemptsAt(url).slice(before[index])).toEqual(["4"]);
});

it("deleting a role ends connections and callbacks at every node; once it is back and clients subscribe again, callbacks resume at their cursors", async () => {
  const { connected, urls, callers } = await attachWithRole();
  await keys.deleteRole("stored");
  await cluster.clock.advance(secondMs);
  const before = urls.map((url) => attemptsAt(url).length);
  expectRefused(callers, 100_701);
  expect(connected.map(({ peer }) => peer.endedBecause)).toEqual(nodes.map(() => "refused"));
  await publish("a/open", "4");
  await cluster.clock.advance(60 * secondMs);
  expect(connected.map(({ peer }) => textsOf(peer))).toEqual(nodes.map(() => ["1"]));
  expect(urls.map((url) => attemptsAt(url).length)).toEqual(before);
  await keys.putRole({ name: "stored", rules: [allOfA] }, 10);
  await cluster.clock.advance(secondMs);
  for (const url of urls) cluster.sink.receive(url, () => ({ status: "accepted" }));
  const { calls } = cluster.node(0);
  for (const { id, topic, url } of await subscriptionsOf(urls)) {
    const rest = { groupId: undefined, format: "RESTful", offset: undefined, secret: undefined } as const;
    await cluster.run(calls.subscribe(await caller("stored", 0), { ...rest, topic, url, subscriptionId: id }));
  }
  await cluster.clock.advance(60 * secondMs);
  for (const [index, url] of urls.entries()) expect(attemptsAt(url).slice(before[index])).toEqual(["2", "4"]);
});

async function subscriptionsOf(urls: readonly string[]) {
  const rows = await cluster.shared.store.listSubscriptions();
  return rows.flatMap(({ id, filter, delivery }) =>
    delivery.kind === "webhook" && urls.includes(delivery.url) ? [{ id, topic: filter, url: delivery.url }] : [],
  );
}
