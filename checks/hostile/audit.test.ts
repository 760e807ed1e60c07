import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Peer } from "../conformance/mqtt/peer.ts";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { until } from "../harness/until.ts";
import { whenClosed } from "../harness/when-closed.ts";
import { AccessWorld } from "./support/access-world.ts";

type Line = Readonly<Record<string, unknown>>;

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

const lines = (): readonly Line[] =>
  world
    .auditLog()
    .trimEnd()
    .split("\n")
    .map((text) => JSON.parse(text) as Line);

/** Waits for lines with these fields, in any order. */
async function expectLines(...expected: readonly Line[]): Promise<void> {
  const has = (wanted: Line): boolean =>
    lines().some((line) => Object.entries(wanted).every(([name, value]) => line[name] === value));
  await until(`the audit log has ${JSON.stringify(expected)}`, () => expected.every(has));
}

const client = { principal: "client", address: "127.0.0.1", outcome: "done" } as const;
const refused = { address: "127.0.0.1", outcome: "refused" } as const;

describe.each(["REST", "JSON-RPC"] as const)("the audit log of calls over %s", (protocol) => {
  const kind = protocol === "REST" ? "REST POST JSON" : "JSON-RPC";
  const topic = `t/${protocol}`;

  it("the audit log records open, close, subscribe, resubscribe and unsubscribe", async () => {
    const api = world.api(kind, "client");
    await api.call("open", { topic });
    const made = await api.call("subscribe", { topic, url: receiver.url });
    const subscriptionId = made.isGood ? String(made.value) : "";
    await api.call("subscribe", { topic, url: receiver.url, subscriptionId });
    await api.call("unSubscribe", { subscriptionId });
    await api.call("close", { topic });
    const by = { ...client, protocol };
    await expectLines(
      { ...by, action: "open", topic },
      { ...by, action: "subscribe", topic, subscriptionId, receiver: new URL(receiver.url).origin },
      { ...by, action: "resubscribe", topic, subscriptionId },
      { ...by, action: "unsubscribe", subscriptionId },
      { ...by, action: "close", topic },
    );
  });

  it("the audit log records refused calls and wrong log-ins", async () => {
    await world.api(kind, "weak").call("open", { topic });
    await world.api(kind, "wrong").call("open", { topic });
    await expectLines(
      { ...refused, action: "open", principal: "weak", topic, code: 100_702, protocol },
      { ...refused, action: "open", topic, code: 100_701, protocol },
      { ...refused, action: "log in", protocol: "HTTP" },
    );
  });
});

it.each([4, 5] as const)(
  "the audit log records filters, wrong log-ins and refusals over MQTT, protocol level %d",
  async (version) => {
    const open = (): Promise<Peer> =>
      Peer.open({ tcp: world.port("MQTT"), websocket: "" }, { transport: "tcp", version });
    const [peer, stranger] = [await open(), await open()];
    const packet = { cmd: "connect", clientId: `audited ${version}`, clean: true, keepalive: 0 };
    peer.send({ ...packet, username: world.credential("client") });
    await peer.next("connack");
    const topic = `t/mqtt/${version}`;
    peer.send({
      cmd: "subscribe",
      messageId: 2,
      subscriptions: [
        { topic, qos: 1 },
        { topic: `other/${version}`, qos: 1 },
      ],
    });
    await peer.next("suback");
    peer.send({ cmd: "unsubscribe", messageId: 3, unsubscriptions: [topic] });
    await peer.next("unsuback");
    peer.send({ cmd: "publish", qos: 1, messageId: 4, topic, payload: "x" });
    await peer.next("puback");
    stranger.send({ ...packet, username: "wrong" });
    await stranger.next("connack");
    await stranger.expectClosed();
    const by = { ...client, protocol: "MQTT" };
    await expectLines(
      { ...by, action: "subscribe", topic },
      { ...by, action: "subscribe", outcome: "refused", topic: `other/${version}`, code: 100_702 },
      { ...by, action: "unsubscribe", topic },
      { ...by, action: "open", topic },
      { ...refused, action: "log in", protocol: "MQTT" },
      { ...refused, action: "connect", protocol: "MQTT", code: 100_701 },
    );
    peer.drop();
  },
);

/** Sends CONNECT and the frames over STOMP, and waits until the broker closes the connection. */
async function talk(credential: string | undefined, ...frames: readonly string[]): Promise<void> {
  const socket = connect(world.port("STOMP"), "127.0.0.1");
  const closed = whenClosed(socket);
  socket.write(`CONNECT\naccept-version:1.2\nhost:x\nlogin:${credential}\n\n\0${frames.join("")}`);
  socket.resume();
  await closed;
}

it("the audit log records subscriptions, wrong log-ins and refusals over STOMP", async () => {
  const subscribe = "SUBSCRIBE\nid:1\ndestination:t/stomp\n\n\0";
  await talk(world.credential("client"), subscribe, "UNSUBSCRIBE\nid:1\nreceipt:x\n\n\0DISCONNECT\nreceipt:last\n\n\0");
  await talk(world.credential("weak"), "SEND\ndestination:t/stomp\n\nx\0");
  await talk("wrong");
  const by = { ...client, protocol: "STOMP" };
  await expectLines(
    { ...by, action: "subscribe", topic: "t/stomp" },
    { ...by, action: "unsubscribe" },
    { ...refused, action: "publish", principal: "weak", protocol: "STOMP", topic: "t/stomp", code: 100_702 },
    { ...refused, action: "log in", protocol: "STOMP" },
  );
});

it("the audit log records requests and refusals at the operators' listener", async () => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_blockNumber", params: [] });
  const chain = { method: "POST", path: "/chain", headers: { "content-type": "application/json" }, body } as const;
  for (const name of ["admin", "client"] as const) {
    const http = world.http(name, world.operators);
    for (const path of ["/metrics", "/admin/listSubscription"]) await http.send({ method: "GET", path });
    await http.send(chain);
    await http.send({ method: "GET", path: "/admin/v1/openapi.json" }); // the same for everybody, so it is not audited
  }
  const admin = { principal: "admin", outcome: "done" };
  await expectLines(
    { ...admin, action: "administer", protocol: "admin" },
    { ...admin, action: "chain", protocol: "chain" },
    { ...refused, principal: "client", action: "administer", protocol: "admin", code: 100_702 },
    { ...refused, principal: "client", action: "chain", protocol: "chain", code: 100_702 },
  );
  expect(world.auditLog()).not.toContain('"health"');
});

it("the audit log records the creation and revocation of a key, without its secret", async () => {
  const key = (await world.key("create", "--principal", "audited", "--role", "client")).trim();
  const keyId = key.slice(6, 22);
  await world.key("revoke", key);
  await expectLines(
    { action: "key create", keyId, principal: "audited", protocol: "command", outcome: "done" },
    { action: "key revoke", keyId, protocol: "command", outcome: "done" },
  );
  expect(world.auditLog()).not.toContain(key.slice(23));
});

it("the audit log records that `stele role` set a role with its rules, and deleted the role", async () => {
  await world.role("set", "audited", '[{"actions":["read"],"filter":"audited"}]');
  await world.role("delete", "audited");
  const rules = '[{"effect":"allow","actions":["read"],"filter":"audited"}]';
  await expectLines(
    { action: "role set", role: "audited", rules, protocol: "command", outcome: "done" },
    { action: "role delete", role: "audited", protocol: "command", outcome: "done" },
  );
});

it("every line of the audit log has a time, and none reports that lines were left out", () => {
  for (const line of lines()) expect(line["time"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(lines().filter(({ outcome }) => outcome === "left out")).toEqual([]);
});
