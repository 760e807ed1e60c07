import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Peer } from "../conformance/mqtt/peer.ts";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { AccessWorld } from "./support/access-world.ts";
import { talk } from "./support/stomp-talk.ts";

let world: AccessWorld;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
  world = await AccessWorld.start();
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await receiver[Symbol.asyncDispose]();
});

/** Size of a publish that uses up a quota of one byte a second for longer than any test runs. */
const bytesTaken = 800;
const greedyConnections = 100;
/** Publishes of each connection, one after another. */
const greedyPublishes = 5;
const quietPublishes = 20;

const durable = (id: string) =>
  `SUBSCRIBE\nid:${id}\ndestination:limited/#\nack:client\nsvc-subscriptionId:${id}\nreceipt:s\n\n\0`;

describe("if a principal is over its quota of bytes a second", () => {
  const path = `/rest/publish?topic=t/a&content=${"x".repeat(bytesTaken)}`;
  let before: unknown;
  beforeAll(async () => {
    expect((await world.http("bounded").send({ method: "GET", path })).json()).toMatchObject({ status: "SUCCESS" });
    before = await world.snapshot();
  });
  afterEach(async () => expect(await world.snapshot()).toEqual(before));

  it("a REST publish over the quota is refused, and the answer says when to try again", async () => {
    const { headers, text } = await world.http("bounded").send({ method: "GET", path });
    expect(JSON.parse(text)).toMatchObject({ code: 200_301, message: expect.stringMatching(/try again in \d+ ms$/) });
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
  });

  it("a JSON-RPC publish over the quota is refused", async () => {
    const outcome = await world.api("JSON-RPC", "bounded").call("publish", { topic: "t/a", content: "more" });
    expect(outcome).toMatchObject({ isGood: false, code: 200_301 });
  });

  it("a STOMP SEND over the quota is refused", async () => {
    const text = await talk(world, "bounded", "SEND\ndestination:t/a\n\nmore\0");
    expect(text).toMatch(/ERROR\n[^\0]*code:200301\n/);
  });

  it("an MQTT 5 publish over the quota is refused, and so is a second connection", async () => {
    const addresses = { tcp: world.port("MQTT"), websocket: "" };
    const connect5 = { cmd: "connect", clean: true, keepalive: 0, username: world.credential("bounded") };
    const [peer, other] = [
      await Peer.open(addresses, { transport: "tcp", version: 5 }),
      await Peer.open(addresses, { transport: "tcp", version: 5 }),
    ];
    peer.send({ ...connect5, clientId: "one" });
    expect((await peer.next("connack")).reasonCode).toBe(0);
    peer.send({ cmd: "publish", qos: 1, messageId: 1, topic: "t/a", payload: "more" });
    expect((await peer.next("puback")).reasonCode).toBe(0x97);
    other.send({ ...connect5, clientId: "other" });
    expect((await other.next("connack")).reasonCode).toBe(0x97);
    peer.drop();
  });
});

it("100 connections over their quota publish nothing, and every publish of another principal succeeds meanwhile", async () => {
  const [quiet, content] = [world.api("REST POST JSON", "client"), "x".repeat(bytesTaken)];
  expect(await quiet.call("open", { topic: "t/quota" })).toMatchObject({ isGood: true });
  await world.api("JSON-RPC", "bounded").call("publish", { topic: "t/quota", content }); // accepted, or refused like all later ones
  const sequence = async (): Promise<number> => {
    const state = await quiet.call("state", { topic: "t/quota" });
    return state.isGood ? (state.value as { sequenceNumber: number }).sequenceNumber : Number.NaN;
  };
  const before = await sequence();
  const push = async (): Promise<readonly unknown[]> => {
    const api = world.api("REST POST JSON", "bounded");
    const answers = [];
    for (let count = 0; count < greedyPublishes; count += 1) {
      answers.push(await api.call("publish", { topic: "t/quota", content: "y" }));
    }
    return answers;
  };
  const pushing = Promise.all(Array.from({ length: greedyConnections }, push));
  for (let count = 0; count < quietPublishes; count += 1) {
    expect(await quiet.call("publish", { topic: "t/quota", content: "z" })).toMatchObject({ isGood: true });
  }
  const answers = (await pushing).flat();
  expect(answers).toHaveLength(greedyConnections * greedyPublishes);
  for (const answer of answers) expect(answer).toMatchObject({ isGood: false, code: 200_301 });
  expect(await sequence()).toBe(before + quietPublishes);
});

describe("if a tenant has used up its quotas of topics, subscriptions and sessions", () => {
  const overQuota = { isGood: false, code: 200_301 };
  const session = { cmd: "connect", clean: false, keepalive: 0, properties: { sessionExpiryInterval: 60 } };
  const connectLimited = async (clientId: string) => {
    const peer = await Peer.open({ tcp: world.port("MQTT"), websocket: "" }, { transport: "tcp", version: 5 });
    peer.send({ ...session, clientId, username: world.credential("limited") });
    return peer;
  };
  let before: unknown;
  beforeAll(async () => {
    const api = world.api("REST GET", "limited");
    expect(await api.call("open", { topic: "limited/a" })).toMatchObject({ isGood: true });
    expect(await api.call("subscribe", { topic: "limited/#", url: receiver.url })).toMatchObject({ isGood: true });
    const peer = await connectLimited("first");
    expect((await peer.next("connack")).reasonCode).toBe(0);
    peer.drop();
    before = await world.snapshot();
  });
  afterEach(async () => expect(await world.snapshot()).toEqual(before));

  it.each(["REST GET", "REST POST JSON", "JSON-RPC"])(
    "a new topic and a new subscription over the quotas are refused by %s",
    async (kind) => {
      const api = world.api(kind, "limited");
      expect(await api.call("open", { topic: "limited/b" })).toMatchObject(overQuota);
      expect(await api.call("subscribe", { topic: "limited/#", url: receiver.url })).toMatchObject(overQuota);
      expect(await api.call("open", { topic: "limited/a" })).toMatchObject({ isGood: true });
    },
  );

  it("a refusal of a new topic over REST says when to try again", async () => {
    const request = { method: "GET", path: "/rest/open?topic=limited/b" } as const;
    const { headers } = await world.http("limited").send(request);
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
  });

  it("MQTT 5 refuses a new session and a publish to a new topic over the quotas, and resumes the existing session", async () => {
    expect((await (await connectLimited("second")).next("connack")).reasonCode).toBe(0x97);
    const peer = await connectLimited("first");
    expect(await peer.next("connack")).toMatchObject({ reasonCode: 0, sessionPresent: true });
    peer.send({ cmd: "publish", qos: 1, messageId: 1, topic: "limited/b", payload: "x" });
    expect((await peer.next("puback")).reasonCode).toBe(0x97);
    peer.drop();
  });

  it("STOMP refuses a durable subscription and a SEND to a new topic over the quotas", async () => {
    for (const frame of [durable("00000000-0000-4000-8000-000000000001"), "SEND\ndestination:limited/b\n\nx\0"]) {
      expect(await talk(world, "limited", frame)).toMatch(/ERROR\n[^\0]*code:200301\n/);
    }
  });
});
