import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { Version } from "../../conformance/stomp/frames.ts";
import type { Client } from "../../harness/client.ts";

export type Headers = Readonly<Record<string, string>>;

export interface Message {
  readonly headers: Headers;
  readonly body: string;
}

/** A STOMP client of any library. */
export interface StompClient {
  /** Opens a connection. It may be the first one, or follow a disconnect. */
  connect(): Promise<void>;
  /** Sends SUBSCRIBE, and returns the headers of its RECEIPT. */
  subscribe(destination: string, headers: Headers): Promise<Headers>;
  /** Sends SEND, and returns the headers of its RECEIPT. */
  send(destination: string, message: Message): Promise<Headers>;
  /** The next MESSAGE of any of the client's subscriptions. */
  next(): Promise<Message>;
  /** Sends UNSUBSCRIBE, and waits for its RECEIPT. */
  unsubscribe(subscription: { readonly id: string; readonly destination: string }): Promise<void>;
  ack(message: Message): void;
  nack(message: Message): void;
  begin(transaction: string): void;
  commit(transaction: string): void;
  abort(transaction: string): void;
  /** Sends DISCONNECT, and resolves after its RECEIPT. */
  disconnect(): Promise<void>;
}

export interface JourneyOptions {
  readonly rest: Client;
  readonly version: Version;
  /** Prefix of the journey's topic names. */
  readonly name: string;
}

type Step = Pick<JourneyOptions, "rest" | "name">;

/** Does with a client what every stock client must be able to do without special code. */
export async function journey(client: StompClient, { rest, version, name }: JourneyOptions): Promise<void> {
  await client.connect();
  await publishAndReceive(client, { rest, name: `${name}/live` });
  await commitBoth(client, { rest, name: `${name}/both` });
  if (version !== "1.0") await rejectOnce(client, { rest, name: `${name}/rejected` });
  await resume(client, { rest, name: `${name}/durable` });
  await client.disconnect();
}

async function publishAndReceive(client: StompClient, { rest, name: topic }: Step): Promise<void> {
  const receipt = await client.subscribe(topic, { id: "live" });
  const subscription = receipt["subscription-id"] ?? "";
  expect(await rest.findSubscription(subscription)).toMatchObject({ interfaceType: "STOMP", topicName: topic });

  const body = "über 21 °C: \u{1F321}\nnext line";
  const headers = { "content-type": "text/plain", colour: "blue", "svc-format": "note" };
  const { eventId = "" } = await client.send(topic, { headers, body });
  expect(eventId).toMatch(/-1-\d+$/);
  const message = await client.next();
  expect(message.body).toBe(body);
  expect(message.headers).toMatchObject({
    ...headers,
    destination: topic,
    eventId,
    "message-id": eventId,
    subscription: "live",
    "subscription-id": subscription,
  });
  const event = await rest.getEvent(eventId);
  expect(Buffer.from(event.content, "base64").toString()).toBe(body);

  const byRpc = await rest.publish(topic, "by JSON-RPC");
  expect(await client.next()).toMatchObject({ body: "by JSON-RPC", headers: { eventId: byRpc.eventId } });
  await client.unsubscribe({ id: "live", destination: topic });
  await rest.publish(topic, "nobody is subscribed");
}

async function commitBoth(client: StompClient, { rest, name: topic }: Step): Promise<void> {
  await rest.open(topic);
  await client.subscribe(topic, { id: "both" });
  client.begin("one");
  for (const body of ["first", "second"]) await client.send(topic, { headers: { transaction: "one" }, body });
  client.begin("dropped");
  await client.send(topic, { headers: { transaction: "dropped" }, body: "never" });
  client.abort("dropped");
  await rest.publish(topic, "before COMMIT");
  expect((await client.next()).body).toBe("before COMMIT");
  client.commit("one");
  expect([(await client.next()).body, (await client.next()).body]).toEqual(["first", "second"]);
}

async function rejectOnce(client: StompClient, { rest, name: topic }: Step): Promise<void> {
  await rest.open(topic);
  await client.subscribe(topic, { id: "rejected", ack: "client-individual" });
  await rest.publish(topic, "again");
  client.nack(await client.next());
  const again = await client.next();
  expect(again.body).toBe("again");
  client.ack(again);
}

async function resume(client: StompClient, { rest, name: topic }: Step): Promise<void> {
  await rest.open(topic);
  const durable = { id: "durable", ack: "client", "svc-subscriptionId": randomUUID() };
  const receipt = await client.subscribe(topic, durable);
  expect(receipt["subscription-id"]).toBe(durable["svc-subscriptionId"]);
  for (const body of ["acknowledged", "not acknowledged"]) await rest.publish(topic, body);
  const first = await client.next();
  expect(first.body).toBe("acknowledged");
  client.ack(first);
  expect((await client.next()).body).toBe("not acknowledged");
  await client.disconnect();

  await rest.publish(topic, "while it was away");
  await client.connect();
  await client.subscribe(topic, durable);
  const bodies = [(await client.next()).body, (await client.next()).body];
  expect(bodies).toEqual(["not acknowledged", "while it was away"]);
}
