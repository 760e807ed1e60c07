import { afterEach, expect, it, vi } from "vitest";
import { withSessionCalls } from "../../engine/testing/with-session-calls.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { createSystemClock } from "../../lib/system/clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { HeldLedger } from "../testing/held-ledger.ts";
import { type FrameFields, RawClient } from "./testing/raw-client.ts";
import { StompWorld, type StompWorldOptions } from "./testing/stomp-world.ts";

const durable = { "svc-subscriptionId": "0a0a0a0a-1111-4222-8333-444444444444", ack: "client-individual" };

let world: StompWorld | undefined;
afterEach(async () => {
  await world?.stop();
  world = undefined;
});

async function start(options: StompWorldOptions = {}): Promise<number> {
  world = await StompWorld.start(options);
  return world.port;
}

async function subscribe(client: RawClient, fields: FrameFields = durable): Promise<void> {
  client.send("SUBSCRIBE", { id: "s", destination: "t", receipt: "subscribed", ...fields });
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("subscribed");
}

/** Publishes from another connection. */
async function publish(...bodies: readonly string[]): Promise<void> {
  const client = await RawClient.connect(world?.port ?? 0);
  for (const body of bodies) client.send("SEND", { destination: "t", receipt: body }, body);
  for (const _ of bodies) await client.next("RECEIPT");
  client.destroy();
}

/** The `ack` headers of the next events, by the events' texts. */
async function take(client: RawClient, count: number): Promise<ReadonlyMap<string, string>> {
  const acks = new Map<string, string>();
  while (acks.size < count) {
    const { headers, body } = await client.next("MESSAGE");
    acks.set(body, headers["ack"] ?? "");
  }
  return acks;
}

async function sequenceOf(topic: string): Promise<number> {
  const call = { topic, groupId: undefined };
  return (await world?.broker.exist(call)) === true ? ((await world?.broker.state(call))?.sequence ?? 0) : 0;
}

async function waitingCount(): Promise<number | undefined> {
  const [node] = (await world?.broker.listSubscriptions()) ?? [];
  return node?.subscriptions[0]?.notifyingCount;
}

it.each(["lost", "taken over"])(
  "counts the ACK of a COMMIT whose connection was %s before its events were durable",
  async (how) => {
    const ledger = new HeldLedger();
    const reads: (() => number)[] = [];
    const watchConnections = (read: () => number): void => void reads.push(read);
    const port = await start({ change: ledger.change, metrics: { watchConnections } });
    const client = await RawClient.connect(port);
    await subscribe(client);
    await publish("1", "2");
    const acks = await take(client, 2);
    ledger.hold();
    client.send("BEGIN", { transaction: "x" });
    client.send("SEND", { destination: "other", transaction: "x" }, "sent");
    client.send("ACK", { id: acks.get("1") ?? "", transaction: "x" });
    client.send("COMMIT", { transaction: "x" });
    await ledger.reached;
    if (how === "lost") client.destroy();
    const next = await RawClient.connect(port);
    next.send("SUBSCRIBE", { id: "s", destination: "t", ...durable });
    await vi.waitFor(() => expect(reads[0]?.()).toBe(1), 30_000); // the earlier connection has ended
    ledger.release();
    expect([...(await take(next, 1)).keys()]).toEqual(["2"]);
    expect(await sequenceOf("other")).toBe(1);
  },
);

it("counts no ACK of a COMMIT that is refused", async () => {
  const port = await start();
  const client = await RawClient.connect(port);
  await subscribe(client);
  await publish("1", "2");
  const acks = await take(client, 2);
  client.send("BEGIN", { transaction: "x" });
  client.send("SEND", { destination: "a+", transaction: "x" }, "sent");
  client.send("ACK", { id: acks.get("1") ?? "", transaction: "x" });
  client.send("COMMIT", { transaction: "x" });
  await client.next("ERROR");
  const next = await RawClient.connect(port);
  await subscribe(next);
  expect([...(await take(next, 2)).keys()]).toEqual(["1", "2"]);
});

it("sends the RECEIPT of DISCONNECT only once the earlier ACKs are in the store, where another node finds them", async () => {
  const memory = createMemoryStore();
  const [reached, released] = [createDeferred<void>(), createDeferred<void>()];
  const store = withSessionCalls(memory, {
    detachSession: async (...call) => {
      reached.resolve();
      await released.promise;
      return memory.sessions.detachSession(...call);
    },
  });
  const port = await start({ store });
  const client = await RawClient.connect(port);
  await subscribe(client);
  await publish("1", "2");
  const acks = await take(client, 2);
  client.send("ACK", { id: acks.get("1") ?? "" });
  const { length } = client.frames;
  client.send("DISCONNECT", { receipt: "bye" });
  await reached.promise;
  await publish("3"); // If the broker had sent the RECEIPT already, it would arrive before the answer to this publish.
  expect(client.frames.length).toBe(length);
  released.resolve();
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("bye");
  await client.closed;
  const next = await RawClient.connect(port);
  await subscribe(next);
  expect([...(await take(next, 2)).keys()]).toEqual(["2", "3"]);
});

it.each([
  ["1.2", "1"],
  ["1.1", "1"],
])("ignores a second ACK long after the first, over STOMP %s", async (version, prefetch) => {
  const client = await RawClient.connect(await start(), version);
  await subscribe(client, { ack: "client-individual", "prefetch-count": prefetch });
  const bodies = Array.from({ length: 50 }, (_, index) => String(index));
  await publish(...bodies);
  const settlings: FrameFields[] = [];
  for (const _ of bodies) {
    const { headers } = await client.next("MESSAGE");
    const named = { "message-id": headers["message-id"] ?? "", subscription: "s" };
    const settling = version === "1.2" ? { id: headers["ack"] ?? "" } : named;
    settlings.push(settling);
    client.send("ACK", settling);
  }
  client.send("ACK", { ...settlings[0], receipt: "again" });
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("again");
});

it("accepts an ACK of an event that the chain removed, and delivers the new event at its position", async () => {
  const chain = new MemoryChain({ clock: createSystemClock() });
  const port = await start({ chain });
  const client = await RawClient.connect(port);
  await subscribe(client);
  await publish("1");
  const { head } = chain;
  await publish("2");
  const acks = await take(client, 2);
  chain.cutBack(head);
  chain.sealEmpty();
  await vi.waitFor(async () => expect(await sequenceOf("t")).toBe(1), 30_000);
  for (const body of ["2", "1"]) {
    client.send("ACK", { id: acks.get(body) ?? "", receipt: body });
    expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe(body);
  }
  await publish("replacement");
  const next = await take(client, 1);
  expect([...next.keys()]).toEqual(["replacement"]);
  expect(await waitingCount()).toBe(1);
  client.send("ACK", { id: next.get("replacement") ?? "", receipt: "last" });
  await client.next("RECEIPT");
  expect(await waitingCount()).toBe(0);
});

/** A client that gets three events of one transaction. Two of them have one eventId; also the positions of these two. */
async function startWithTwins(version: string, ack: string) {
  const client = await RawClient.connect(await start(), version);
  await subscribe(client, { ...durable, ack, destination: "topic/+", "prefetch-count": "3" });
  client.send("BEGIN", { transaction: "x" });
  for (const name of ["50622", "other", "83634"])
    client.send("SEND", { destination: `topic/${name}`, transaction: "x" }, name);
  client.send("COMMIT", { transaction: "x" });
  const messages = [await client.next("MESSAGE"), await client.next("MESSAGE"), await client.next("MESSAGE")];
  const [first, last] = messages.flatMap(({ body }, place) => (body === "other" ? [] : [place]));
  if (first === undefined || last === undefined) expect.fail("two events");
  expect(messages[first]?.headers["eventId"]).toBe(messages[last]?.headers["eventId"]);
  const acknowledge = async (place: number): Promise<void> => {
    const { headers } = messages[place] ?? expect.fail("no such event");
    const name = { "message-id": headers["message-id"] ?? "", eventId: headers["eventId"] ?? "", subscription: "s" };
    client.send("ACK", { ...(version === "1.2" ? { id: headers["ack"] ?? "" } : name), receipt: "ack" });
    await client.next("RECEIPT");
  };
  /** The events that the next connection gets again. */
  const left = async (): Promise<readonly string[]> => {
    const next = await RawClient.connect(world?.port ?? 0, version);
    await subscribe(next, { ...durable, ack: "auto", destination: "topic/+" });
    next.send("SEND", { destination: "topic/end", receipt: "end" }, "end");
    const bodies: string[] = [];
    while (bodies.at(-1) !== "end") {
      const frame = (await next.nextAny()) ?? expect.fail("the connection has ended");
      if (frame.command === "MESSAGE") bodies.push(frame.body);
    }
    return bodies.slice(0, -1);
  };
  return { bodies: messages.map(({ body }) => body), first, last, acknowledge, left };
}

it.each([
  ["first", "1.0"],
  ["first", "1.1"],
  ["first", "1.2"],
  ["last", "1.0"],
  ["last", "1.1"],
  ["last", "1.2"],
] as const)(
  "with ack:client, the ACK of the %s of two events with one eventId counts for all events up to it, and for no later one, over STOMP %s",
  async (which, version) => {
    const twins = await startWithTwins(version, "client");
    await twins.acknowledge(twins[which]);
    expect(await twins.left()).toEqual(twins.bodies.slice(twins[which] + 1));
  },
);

it.each(["1.1", "1.2"])(
  "counts each ACK of two events with one eventId for its own event over STOMP %s",
  async (version) => {
    const { bodies, last, acknowledge, left } = await startWithTwins(version, "client-individual");
    await acknowledge(last);
    await acknowledge(last);
    expect(await left()).toEqual(bodies.filter((_, place) => place !== last));
  },
);

it("sends the RECEIPT of a NACK before the ERROR that ends the connection for it", async () => {
  const client = await RawClient.connect(await start({ limits: { rejectionsMax: 2 } }));
  await subscribe(client);
  await publish("1", "2");
  const ack = (await take(client, 2)).get("1") ?? "";
  client.send("NACK", { id: ack });
  await client.next("MESSAGE");
  client.send("NACK", { id: ack, receipt: "rejected" });
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("rejected");
  expect((await client.next("ERROR")).headers["message"]).toContain("is suspended");
});

it("says that a subscription which ends with its connection cannot be resumed", async () => {
  const port = await start({ limits: { rejectionsMax: 1 } });
  const client = await RawClient.connect(port);
  await subscribe(client, { ack: "client-individual" });
  await publish("1");
  client.send("NACK", { id: (await take(client, 1)).get("1") ?? "" });
  expect((await client.next("ERROR")).headers["message"]).toContain("has ended and cannot be resumed");
});
