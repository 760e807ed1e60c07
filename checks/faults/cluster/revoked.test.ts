import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Peer } from "../../conformance/mqtt/peer.ts";
import { changeAccess } from "../../harness/broker-command.ts";
import { Cluster } from "../../harness/cluster.ts";
import type { ClusterNode } from "../../harness/cluster-node.ts";
import { HttpClient } from "../../harness/http-client.ts";
import { portOf } from "../../harness/listener-port.ts";
import { hasPostgres, titleOf } from "../../harness/postgres.ts";
import { accept, type Attempt } from "../../harness/receiver.ts";
import { TailClient } from "../../harness/tail-client.ts";
import { until } from "../../harness/until.ts";
import { useReceivers } from "../../harness/use.ts";
import { whenClosed } from "../../harness/when-closed.ts";

const allActions = ["open", "publish", "subscribe", "unsubscribe", "read"];
const access = { roles: {} };
const env = {
  STELE_ACCESS: JSON.stringify(access),
  STELE_ADMIN_PORT: "0",
  STELE_MQTT_PORT: "0",
  STELE_STOMP_PORT: "0",
};
const start = useReceivers();

function command(node: ClusterNode, name: "key" | "role", ...words: readonly string[]): Promise<string> {
  const { env: own, dataDir } = node.options;
  return changeAccess(name, words, { ...own, STELE_DATA_DIR: dataDir });
}

async function ask(node: ClusterNode, credential: string, path: string): Promise<unknown> {
  await using client = new HttpClient(node.url);
  const headers = { authorization: `Bearer ${credential}` };
  return (await client.send({ method: "GET", path: `/rest/${path}`, headers })).json();
}

/** A principal with its key, and the topic of its test. */
interface Reader {
  readonly credential: string;
  readonly topic: string;
}

/** An MQTT client that never acknowledges, so that one event fills its window. */
async function connectMqtt(node: ClusterNode, { credential, topic }: Reader): Promise<Peer> {
  const addresses = { tcp: portOf(node.broker, "MQTT"), websocket: "" };
  const peer = await Peer.open(addresses, { transport: "tcp", version: 5 });
  const properties = { receiveMaximum: 1 };
  peer.send({ cmd: "connect", clientId: node.address, clean: true, keepalive: 0, username: credential, properties });
  expect((await peer.next("connack")).reasonCode).toBe(0);
  peer.send({ cmd: "subscribe", messageId: 1, subscriptions: [{ topic, qos: 1 }] });
  expect((await peer.next("suback")).granted).toEqual([1]);
  return peer;
}

/** A STOMP client that never acknowledges, so that one event fills its window. */
async function connectStomp(node: ClusterNode, { credential, topic }: Reader) {
  const socket = connect(portOf(node.broker, "STOMP"), "127.0.0.1");
  const closed = whenClosed(socket);
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  socket.write(`CONNECT\naccept-version:1.2\nhost:x\nlogin:${credential}\n\n\0`);
  socket.write(`SUBSCRIBE\nid:1\ndestination:${topic}\nack:client\nprefetch-count:1\nreceipt:s\n\n\0`);
  await until("the subscription is there", () => text.includes("receipt-id:s"));
  return { closed, text: () => text };
}

/** Begins a tail. A tail has no window: its client reads every event at once. */
function beginTail(node: ClusterNode, { credential, topic }: Reader) {
  const client = new TailClient(`topic=${topic}`, { authorization: `Bearer ${credential}` });
  return { client, ended: client.read(node.url, () => true) };
}

/** The ways in which the reader loses its rights. */
const ways = [
  ["a principal whose last key was revoked", "key", "revoke"],
  ["a principal whose role was deleted from the store", "role", "delete"],
] as const;

describe.runIf(hasPostgres)(titleOf("three nodes with access"), () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({ env });
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it.each(ways)(
    "on three nodes, %s gets no new events, and no events that waited for a full window",
    async (_, name, action) => {
      const [first, last] = [cluster.nodes[0], cluster.nodes[2]];
      if (first === undefined || last === undefined) throw new Error("no nodes");
      const [topic, role] = [`rights/${name}`, `stored-${name}`];
      await command(first, "role", "set", role, JSON.stringify([{ actions: allActions }]));
      const [credential, admin] = [
        await command(first, "key", "create", "--principal", `reader-${name}`, "--role", role),
        await command(first, "key", "create", "--principal", "operator", "--role", "admin"),
      ];
      const reader = { credential, topic };
      const publish = (node: ClusterNode, content: string): Promise<unknown> =>
        ask(node, admin, `publish?topic=${topic}&content=${content}`);
      const subscribe = (node: ClusterNode, key: string, url: string): Promise<unknown> =>
        ask(node, key, `subscribe?topic=${topic}&url=${encodeURIComponent(url)}`);
      const exist = (node: ClusterNode): Promise<unknown> => ask(node, credential, `exist?topic=${topic}`);
      for (const node of cluster.nodes) {
        await until("the node answers", async () => (await exist(node)) !== undefined);
        await until("the topic is open", async () => (await ask(node, admin, `open?topic=${topic}`)) === true);
        await until("the node accepts the reader's key", async () => (await exist(node)) === true);
      }
      const held: { readonly attempt: Attempt; readonly response: ServerResponse }[] = [];
      const withheld = await start((attempt, response) => void held.push({ attempt, response }));
      const control = await start();
      for (const node of cluster.nodes) await subscribe(node, credential, withheld.url);
      await subscribe(first, admin, control.url);
      const mqtt = await Promise.all(cluster.nodes.map((node) => connectMqtt(node, reader)));
      const tails = cluster.nodes.map((node) => beginTail(node, reader));
      for (const { client } of tails) await until("the tail has begun", () => client.opened === 1);
      const stomp = await Promise.all(cluster.nodes.map((node) => connectStomp(node, reader)));

      for (const content of ["one", "two", "three"]) await publish(first, content);
      for (const peer of mqtt) expect(String((await peer.next("publish")).payload)).toBe("one");
      await until(
        "each window is full",
        () => held.length === 3 && stomp.every(({ text }) => text().includes("\n\none")),
      );
      for (const { client } of tails) await until("the tail has all events", () => client.events.length === 3);
      await command(last, name, action, name === "key" ? credential : role);
      const isRefused = async (node: ClusterNode): Promise<boolean> =>
        JSON.stringify(await exist(node)).includes("100701");
      for (const node of cluster.nodes) await until("the reader is refused", () => isRefused(node));
      const ends = [...mqtt.map((peer) => peer.expectEnded(0x87)), ...stomp.map(({ closed }) => closed)];
      await Promise.all([...ends, ...tails.map(({ ended }) => ended)]);

      for (const { attempt, response } of held.splice(0)) accept(attempt, response);
      for (const node of cluster.nodes) await publish(node, "later");
      await control.waitForCount(6);
      expect(withheld.attempts.map(({ event }) => Buffer.from(event.content, "base64").toString())).toEqual(
        Array.from({ length: 3 }, () => "one"),
      );
      for (const { text } of stomp) expect(text()).not.toMatch(/\n\n(two|three|later)/);
      for (const { client } of tails) {
        expect([client.events.map(({ text }) => text), client.notices]).toEqual([["one", "two", "three"], ["end"]]);
      }
    },
  );
});
