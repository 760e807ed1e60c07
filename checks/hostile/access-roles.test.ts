import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { Peer } from "../conformance/mqtt/peer.ts";
import type { HttpRequest } from "../harness/http-client.ts";
import { until } from "../harness/until.ts";
import { whenClosed } from "../harness/when-closed.ts";
import { AccessWorld } from "./support/access-world.ts";

let world: AccessWorld;
/** API key of a principal whose only role is `short-lived`, which the tests change through the admin API. */
let key = "";
beforeAll(async () => {
  world = await AccessWorld.start();
  await set(rules);
  key = (await world.key("create", "--principal", "temp", "--role", "short-lived")).trim();
  await until("the broker knows the key", async () => (await state()).text.includes("sequenceNumber"));
});
beforeEach(() => set(rules));
afterAll(async () => world[Symbol.asyncDispose]());

const rules = [{ actions: ["publish", "subscribe", "read", "open"], filter: "t/#" }];
const set = async (given: readonly object[]): Promise<void> => {
  const headers = { "content-type": "application/json" };
  await ask({ method: "PUT", headers, body: JSON.stringify({ rules: given }) });
};
const ask = async (rest: Pick<HttpRequest, "method" | "headers" | "body">): Promise<void> => {
  const call = { ...rest, path: "/admin/v1/roles/short-lived" };
  expect((await world.http("admin", world.operators).send(call)).status).toBe(200);
};
const state = () => {
  const headers = { authorization: `Bearer ${key}` };
  return world.http("none").send({ method: "GET", path: "/rest/state?topic=t/a", headers });
};
/** Ways to withdraw a role's rights, with the code and the status of later calls. */
const withdrawals = [
  ["loses its rules", () => set([]), { code: 100_702, status: 403 }],
  ["is deleted", () => ask({ method: "DELETE" }), { code: 100_701, status: 401 }],
] as const;

function subscribeTo(topic: string) {
  return { cmd: "subscribe", messageId: 2, subscriptions: [{ topic, qos: 1 }] };
}

const connectPeer = async (version: 4 | 5): Promise<Peer> => {
  const peer = await Peer.open({ tcp: world.port("MQTT"), websocket: "" }, { transport: "tcp", version });
  peer.send({ cmd: "connect", clientId: `temp ${version}`, clean: true, keepalive: 0, username: key });
  await peer.next("connack");
  peer.send(subscribeTo("t/#"));
  expect((await peer.next("suback")).granted).toEqual([1]);
  return peer;
};
const publishByClient = () => world.api("REST GET", "client").call("publish", { topic: "t/a", content: "not for all" });

it.each([4, 5] as const)(
  "when a role loses its rules, an open MQTT connection loses the rights at once, protocol level %d",
  async (version) => {
    const peer = await connectPeer(version);
    await set([]);
    await publishByClient();
    peer.send(subscribeTo("t/a"));
    expect((await peer.next("suback")).granted).toEqual([version === 5 ? 0x87 : 0x80]); // `next` fails if an event comes first.
    peer.send({ cmd: "publish", qos: 1, messageId: 1, topic: "t/a", payload: "mqtt" });
    if (version === 5) expect((await peer.next("puback")).reasonCode).toBe(0x87);
    else await peer.expectClosed();
    peer.drop();
  },
);

it.each([4, 5] as const)(
  "when a role is deleted, the broker closes an open MQTT connection, protocol level %d",
  async (version) => {
    const peer = await connectPeer(version);
    await ask({ method: "DELETE" });
    await peer.expectEnded(0x87);
  },
);

it.each(withdrawals)(
  "when a role %s, its rights over REST, JSON-RPC, tail and STOMP end at once",
  async (_, withdraw, { code, status }) => {
    const socket = connect(world.port("STOMP"), "127.0.0.1");
    const closed = whenClosed(socket);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.write(`CONNECT\naccept-version:1.2\nhost:x\nlogin:${key}\n\n\0`);
    socket.write("SUBSCRIBE\nid:1\ndestination:t/#\nack:auto\nreceipt:subscribed\n\n\0");
    await until("the broker confirms the subscription", () => text.includes("receipt-id:subscribed"));
    await withdraw();
    await publishByClient();
    socket.write("SEND\ndestination:t/a\nreceipt:sent\n\nstomp\0");
    await closed;
    expect(text).toMatch(new RegExp(`ERROR\\n[^\\0]*code:${code}\\n`));
    expect(text).not.toContain("MESSAGE");
    expect((await state()).json()).toMatchObject({ code });
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: "1", method: "state", params: { topic: "t/a" } });
    const answer = await world.http("none").send({ method: "POST", path: "/jsonrpc", headers, body });
    expect(answer.json()).toMatchObject({ error: { code: -32_001, data: { code } } });
    const tail = await world.http("none").send({ method: "HEAD", path: "/tail?topic=t/%23", headers });
    expect(tail.status).toBe(status);
  },
);

it("the command `stele role set` changes a role within 1.5 s", async () => {
  await world.role("set", "short-lived", "[]");
  const changedAt = Date.now();
  await until("the right is gone", async () => (await state()).text.includes("100702"));
  expect(Date.now() - changedAt).toBeLessThan(1_500);
  await world.role("set", "short-lived", JSON.stringify(rules));
  await until("the right is back", async () => (await state()).text.includes("sequenceNumber"));
});
