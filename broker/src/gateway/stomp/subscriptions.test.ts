import { afterEach, expect, it, vi } from "vitest";
import { HeldLedger } from "../testing/held-ledger.ts";
import { InFlight } from "./in-flight.ts";
import { type FrameFields, RawClient, type ServerFrame } from "./testing/raw-client.ts";
import { StompWorld, type StompWorldOptions } from "./testing/stomp-world.ts";

const durableId = "0a0a0a0a-1111-4222-8333-444444444444";

let world: StompWorld | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await world?.stop();
  world = undefined;
});

async function start(options: StompWorldOptions = {}): Promise<number> {
  world = await StompWorld.start(options);
  return world.port;
}

async function subscribe(client: RawClient, fields: FrameFields): Promise<ServerFrame> {
  client.send("SUBSCRIBE", { id: "s", destination: "t", receipt: "subscribed", ...fields });
  const receipt = await client.next("RECEIPT");
  expect(receipt.headers["receipt-id"]).toBe("subscribed");
  return receipt;
}

/** Publishes by a connection of its own. Returns the eventIds. */
async function publish(port: number, ...bodies: readonly string[]): Promise<readonly string[]> {
  const client = await RawClient.connect(port);
  for (const body of bodies) client.send("SEND", { destination: "t", receipt: body }, body);
  const ids: string[] = [];
  for (const _ of bodies) ids.push((await client.next("RECEIPT")).headers["eventId"] ?? "");
  client.destroy();
  return ids;
}

async function bodies(client: RawClient, count: number): Promise<readonly string[]> {
  const found: string[] = [];
  while (found.length < count) found.push((await client.next("MESSAGE")).body);
  return found;
}

/** How many events wait for each subscription of the listing. */
async function waiting(): Promise<readonly number[]> {
  const [node] = (await world?.broker.listSubscriptions()) ?? [];
  return node?.subscriptions.map(({ notifyingCount }) => notifyingCount) ?? [];
}

function ackOf({ headers }: ServerFrame, version: string): FrameFields {
  if (version === "1.2") return { id: headers["ack"] ?? "none" };
  const messageId = { "message-id": headers["message-id"] ?? "none" };
  return version === "1.1" ? { ...messageId, subscription: headers["subscription"] ?? "none" } : messageId;
}

it.each(["1.0", "1.1", "1.2"])(
  "acknowledges an event and all before it with ack:client, over STOMP %s",
  async (version) => {
    const port = await start();
    const client = await RawClient.connect(port, version);
    await subscribe(client, { ack: "client", "prefetch-count": "3" });
    await publish(port, "1", "2", "3", "4", "5");
    await client.next("MESSAGE");
    const second = await client.next("MESSAGE");
    await client.next("MESSAGE");
    client.send("ACK", { ...ackOf(second, version), receipt: "acked" });
    await client.next("RECEIPT");
    expect(await bodies(client, 2)).toEqual(["4", "5"]);
    expect(await waiting()).toEqual([3]);
  },
);

it.each(["1.1", "1.2"])("acknowledges one event with ack:client-individual, over STOMP %s", async (version) => {
  const port = await start();
  const client = await RawClient.connect(port, version);
  await subscribe(client, { ack: "client-individual", "prefetch-count": "2" });
  await publish(port, "1", "2", "3");
  const [first, second] = [await client.next("MESSAGE"), await client.next("MESSAGE")];
  client.send("ACK", ackOf(second, version));
  const third = await client.next("MESSAGE");
  expect(third.body).toBe("3");
  expect(await waiting()).toEqual([3]); // the cursor stays before the events that are not acknowledged
  for (const message of [third, first]) client.send("ACK", ackOf(message, version));
  client.send("ACK", { ...ackOf(first, version), receipt: "twice" });
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("twice");
  expect(await waiting()).toEqual([0]);
});

it("refuses ack:client-individual in 1.0", async () => {
  const client = await RawClient.connect(await start(), "1.0");
  client.send("SUBSCRIBE", { destination: "t", ack: "client-individual" });
  expect((await client.next("ERROR")).headers["message"]).toContain("knows auto, client");
});

it("names a STOMP 1.0 subscription by its destination if it has no id", async () => {
  const port = await start();
  const client = await RawClient.connect(port, "1.0");
  client.send("SUBSCRIBE", { destination: " t ", receipt: "1" });
  await client.next("RECEIPT");
  await publish(port, "x");
  expect((await client.next("MESSAGE")).headers).not.toHaveProperty("subscription");
  client.send("UNSUBSCRIBE", { destination: "t", receipt: "2" });
  await client.next("RECEIPT");
  expect(await waiting()).toEqual([]);
});

it("a STOMP 1.0 UNSUBSCRIBE with only a destination ends first the subscription without an id, then the one with an id", async () => {
  const port = await start();
  const client = await RawClient.connect(port, "1.0");
  await subscribe(client, { id: "t", destination: "u" });
  await subscribe(client, { id: "s", destination: "t,v" });
  client.send("SUBSCRIBE", { destination: "t,v", receipt: "0" });
  client.send("UNSUBSCRIBE", { destination: "t,v", receipt: "1" });
  for (const receipt of ["0", "1"]) expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe(receipt);
  await publish(port, "x");
  expect((await client.next("MESSAGE")).headers["subscription"]).toBe("s");
  client.send("UNSUBSCRIBE", { destination: "t,v", receipt: "2" });
  await client.next("RECEIPT");
  expect(await waiting()).toHaveLength(1);
  client.send("UNSUBSCRIBE", { destination: "t", receipt: "3" });
  expect((await client.next("ERROR")).headers["message"]).toContain("no subscription");
});

it("delivers an event once to each subscription of a connection, even if several of its filters match", async () => {
  const port = await start();
  const client = await RawClient.connect(port);
  await subscribe(client, { id: "list", destination: "t,#,other" });
  await subscribe(client, { id: "one" });
  await publish(port, "1", "2");
  const found = [];
  for (let count = 0; count < 4; count += 1) {
    const { headers, body } = await client.next("MESSAGE");
    found.push(`${headers["subscription"]} ${body}`);
  }
  expect(found.toSorted()).toEqual(["list 1", "list 2", "one 1", "one 2"]);
});

it("ends a subscription by UNSUBSCRIBE, and ignores later ACKs of its events", async () => {
  const port = await start();
  for (const version of ["1.0", "1.1", "1.2"]) {
    const client = await RawClient.connect(port, version);
    await subscribe(client, { ack: "client" });
    await publish(port, "1");
    const message = await client.next("MESSAGE");
    client.send("UNSUBSCRIBE", { id: "s", receipt: "gone" });
    await client.next("RECEIPT");
    expect(await waiting()).toEqual([]);
    client.send("ACK", { ...ackOf(message, version), receipt: "acked" });
    expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("acked");
    client.destroy();
  }
});

it("if another connection resumes a durable subscription, that connection gets each unacknowledged event", async () => {
  const port = await start();
  const fields = { "svc-subscriptionId": durableId, ack: "client-individual" };
  const first = await RawClient.connect(port);
  expect((await subscribe(first, fields)).headers["subscription-id"]).toBe(durableId);
  await publish(port, "1", "2", "3");
  const messages = [await first.next("MESSAGE"), await first.next("MESSAGE"), await first.next("MESSAGE")];
  expect(messages.map(({ headers }) => headers["subscription-id"])).toEqual([durableId, durableId, durableId]);
  for (const message of messages.filter(({ body }) => body !== "2")) first.send("ACK", ackOf(message, "1.2"));
  first.send("DISCONNECT", { receipt: "bye" });
  await first.next("RECEIPT");
  await first.closed;
  await publish(port, "4");
  const second = await RawClient.connect(port, "1.1");
  await subscribe(second, fields);
  expect(await bodies(second, 2)).toEqual(["2", "4"]);
});

it.each(["1.1", "1.2"])(
  "uses the ack mode of the SUBSCRIBE that resumes a subscription, over STOMP %s",
  async (version) => {
    const port = await start();
    const resume = async (ack: string): Promise<RawClient> => {
      const client = await RawClient.connect(port, version);
      await subscribe(client, { "svc-subscriptionId": durableId, ack, "prefetch-count": "2" });
      return client;
    };
    const first = await resume("client-individual");
    await publish(port, "1", "2", "3");
    expect(await bodies(first, 2)).toEqual(["1", "2"]);
    first.destroy();
    const second = await resume("auto");
    await publish(port, "4", "5", "6");
    for (const body of ["1", "2", "3", "4", "5", "6"]) {
      const message = await second.next("MESSAGE");
      expect([message.body, message.headers["ack"]]).toEqual([body, undefined]);
    }
    second.destroy();
    const third = await resume("client");
    await publish(port, "7", "8", "9");
    await third.next("MESSAGE");
    third.send("ACK", ackOf(await third.next("MESSAGE"), version));
    expect(await bodies(third, 1)).toEqual(["9"]);
  },
);

it("over STOMP 1.1, ignores a late ACK for an ended subscription although a new subscription has the same id", async () => {
  const port = await start();
  const client = await RawClient.connect(port, "1.1");
  await subscribe(client, { ack: "client" });
  await publish(port, "1");
  const message = await client.next("MESSAGE");
  client.send("UNSUBSCRIBE", { id: "s" });
  await subscribe(client, { ack: "client" });
  client.send("ACK", { ...ackOf(message, "1.1"), receipt: "late" });
  expect((await client.next("RECEIPT")).headers["receipt-id"]).toBe("late");
  await publish(port, "2");
  client.send("ACK", { ...ackOf(await client.next("MESSAGE"), "1.1"), receipt: "acked" });
  await client.next("RECEIPT");
  expect(await waiting()).toEqual([0]);
});

it("removes a durable subscription by UNSUBSCRIBE", async () => {
  const port = await start();
  const first = await RawClient.connect(port);
  await subscribe(first, { "svc-subscriptionId": durableId });
  first.send("UNSUBSCRIBE", { id: "s", receipt: "gone" });
  await first.next("RECEIPT");
  await publish(port, "1");
  await subscribe(first, { "svc-subscriptionId": durableId });
  await publish(port, "2");
  expect(await bodies(first, 1)).toEqual(["2"]);
});

it("refuses to resume a durable subscription with other destinations", async () => {
  const port = await start();
  const first = await RawClient.connect(port);
  await subscribe(first, { "svc-subscriptionId": durableId });
  first.destroy();
  const second = await RawClient.connect(port);
  second.send("SUBSCRIBE", { id: "s", destination: "other", "svc-subscriptionId": durableId });
  expect((await second.next("ERROR")).headers["code"]).toBe("100108");
});

it("ends the connection whose durable subscription another connection resumes", async () => {
  const port = await start();
  const [first, second] = [await RawClient.connect(port), await RawClient.connect(port)];
  await subscribe(first, { "svc-subscriptionId": durableId });
  await subscribe(second, { "svc-subscriptionId": durableId });
  const { headers } = await first.next("ERROR");
  expect(headers).toMatchObject({ code: "100507", message: expect.stringContaining("another connection") });
  await first.closed;
  await publish(port, "1");
  expect(await bodies(second, 1)).toEqual(["1"]);
});

it("starts after the event that the header eventId names, or at OFFSET_FIRST or OFFSET_LAST", async () => {
  const port = await start();
  const [first = ""] = await publish(port, "1", "2", "3");
  const client = await RawClient.connect(port);
  await subscribe(client, { id: "all", eventId: "OFFSET_FIRST" });
  expect(await bodies(client, 3)).toEqual(["1", "2", "3"]);
  await subscribe(client, { id: "some", eventId: first });
  expect(await bodies(client, 2)).toEqual(["2", "3"]);
  await subscribe(client, { id: "none", eventId: "OFFSET_LAST" });
  await publish(port, "4");
  expect(await bodies(client, 3)).toEqual(["4", "4", "4"]);
});

it("sends a NACKed event again", async () => {
  const port = await start();
  const client = await RawClient.connect(port);
  await subscribe(client, { ack: "client-individual" });
  await publish(port, "1", "2");
  const [first, second] = [await client.next("MESSAGE"), await client.next("MESSAGE")];
  client.send("ACK", ackOf(second, "1.2"));
  client.send("NACK", ackOf(first, "1.2"));
  const again = await client.next("MESSAGE");
  expect(again).toEqual(first);
  client.send("ACK", { ...ackOf(again, "1.2"), receipt: "done" });
  await client.next("RECEIPT");
  expect(await waiting()).toEqual([0]);
});

it("sends a NACKed event and all before it again with ack:client", async () => {
  const port = await start();
  const client = await RawClient.connect(port);
  await subscribe(client, { ack: "client" });
  await publish(port, "1", "2", "3");
  const [first, second] = [await client.next("MESSAGE"), await client.next("MESSAGE"), await client.next("MESSAGE")];
  client.send("NACK", ackOf(second, "1.2"));
  for (const message of [first, second]) expect(await client.next("MESSAGE")).toEqual(message);
  await publish(port, "4");
  expect(await bodies(client, 1)).toEqual(["4"]);
});

it("sends no MESSAGE before the RECEIPT of its SUBSCRIBE", async () => {
  const ledger = new HeldLedger();
  const port = await start({ change: ledger.change });
  await publish(port, "1");
  await world?.broker.open({ topic: "other", groupId: undefined });
  const client = await RawClient.connect(port);
  ledger.hold();
  client.send("SEND", { destination: "other", receipt: "slow" });
  await ledger.reached;
  client.send("SUBSCRIBE", { id: "s", destination: "t", receipt: "subscribed", eventId: "OFFSET_FIRST" });
  await vi.waitFor(async () => expect(await waiting()).toHaveLength(1), 30_000);
  ledger.release();
  const receipts = [await client.next("RECEIPT"), await client.next("RECEIPT")];
  expect(receipts.map(({ headers }) => headers["receipt-id"])).toEqual(["slow", "subscribed"]);
  expect(await bodies(client, 1)).toEqual(["1"]);
});

it("ends a connection whose client rejects one event too often; a SUBSCRIBE resumes the subscription", async () => {
  const port = await start({ limits: { rejectionsMax: 2 } });
  const client = await RawClient.connect(port);
  const fields = { "svc-subscriptionId": durableId, ack: "client-individual" };
  await subscribe(client, fields);
  await publish(port, "1");
  for (const _ of [1, 2]) client.send("NACK", ackOf(await client.next("MESSAGE"), "1.2"));
  expect((await client.next("ERROR")).headers["message"]).toContain(`${durableId} is suspended`);
  await client.closed;
  const next = await RawClient.connect(port);
  await subscribe(next, fields);
  expect(await bodies(next, 1)).toEqual(["1"]);
});

it.each(["1.0", "1.1"])(
  "acknowledges the event of message-id, even if the ACK has another eventId, over STOMP %s",
  async (version) => {
    const port = await start();
    const client = await RawClient.connect(port, version);
    await subscribe(client, { ack: "client" });
    await publish(port, "1", "2");
    const [first, second] = [await client.next("MESSAGE"), await client.next("MESSAGE")];
    client.send("ACK", { ...ackOf(first, version), eventId: second.headers["eventId"] ?? "", receipt: "acked" });
    await client.next("RECEIPT");
    expect(await waiting()).toEqual([1]);
  },
);

it.each([
  ["two subscriptions of one id", { id: "s", destination: "u" }, /"s" already/],
  ["one durable subscription twice", { id: "u", destination: "t", "svc-subscriptionId": durableId }, /already/],
  ["too many subscriptions", { id: "u", destination: "u" }, /1 subscriptions/],
])("refuses %s on a connection", async (_, fields, message) => {
  const client = await RawClient.connect(await start({ settings: { subscriptionsMax: 1 } }));
  await subscribe(client, { "svc-subscriptionId": durableId });
  client.send("SUBSCRIBE", fields);
  expect((await client.next("ERROR")).headers["message"]).toMatch(message);
});

it("lists a STOMP subscription with its protocol, and lets other callers remove it", async () => {
  const port = await start();
  const client = await RawClient.connect(port);
  await subscribe(client, { "svc-subscriptionId": durableId });
  const [node] = (await world?.broker.listSubscriptions()) ?? [];
  expect(node?.subscriptions).toMatchObject([{ id: durableId, filter: "t", delivery: { protocol: "STOMP" } }]);
  await world?.broker.unSubscribe({ subscriptionId: durableId });
  expect((await client.next("ERROR")).headers["message"]).toContain("removed");
});

it("remembers as many settled events as settledMax says", () => {
  const inFlight = new InFlight(2);
  for (const [ticket, eventId] of ["a", "b", "c"].entries()) inFlight.give(eventId, ticket + 1);
  expect(inFlight.settle("c", "through")).toEqual([1, 2, 3]);
  expect(["a", "b", "c"].map((eventId) => inFlight.knows(eventId))).toEqual([false, true, true]);
  expect(inFlight.settle("c", "one")).toEqual([]);
});

it("ignores a late ACK of a removed event whose ticket now belongs to another event", () => {
  const inFlight = new InFlight(2);
  inFlight.give("removed", 1);
  inFlight.give("a", 2);
  inFlight.give("b", 1); // 65,535 tickets later
  expect(inFlight.settle("removed", "one")).toEqual([]);
  expect(inFlight.knows("removed")).toBe(true);
  expect(inFlight.settle("a", "through")).toEqual([2]);
  expect(inFlight.settle("b", "one")).toEqual([1]);
});

/** A destination of 400 topics, numbered from `first`. */
function toDestination(first: number): string {
  return Array.from({ length: 400 }, (_, index) => `t${first + index}`).join(",");
}

it("limits the filters of all subscriptions of a connection together", async () => {
  const client = await RawClient.connect(await start());
  for (const id of ["1", "2"]) await subscribe(client, { id, destination: toDestination(0) });
  client.send("UNSUBSCRIBE", { id: "1" });
  await subscribe(client, { id: "3", destination: toDestination(400) });
  client.send("SUBSCRIBE", { id: "4", destination: toDestination(800), receipt: "4" });
  const { headers } = await client.next("ERROR");
  expect(headers).toMatchObject({ code: "200301", "receipt-id": "4" });
  expect(headers["message"]).toContain("at most 1000 filters");
});

it("refuses more filters than a session may have", async () => {
  const client = await RawClient.connect(await start());
  const destination = Array.from({ length: 1_001 }, (_, index) => `t${index}`).join(",");
  client.send("SUBSCRIBE", { id: "s", destination });
  expect((await client.next("ERROR")).headers["message"]).toContain("at most 1000");
});
