import { createServer } from "node:http";
import { connect as connectTcp } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { connectAsync } from "mqtt";
import { ClusterStack } from "../lib/cluster-stack.mjs";
import { toFigure } from "../lib/figure.mjs";
import { topic } from "../lib/servers.mjs";
import { waitFor } from "../lib/wait-for.mjs";

const nodes = 3;
const rounds = 5;
const publishEveryMs = 10;
/** Time without events after which a subscriber counts as silent. */
const silentMs = 3_000;
const access = { roles: { member: [{ actions: ["open", "publish", "subscribe", "read"] }] } };
const settings = { STELE_MQTT_PORT: "0", STELE_STOMP_PORT: "0" };
const kinds = { callbacks: subscribeCallbacks, MQTT: openMqtt, STOMP: openStomp, tail: openTail };

/**
 * Revokes the only key of a reader that is subscribed at every node by every protocol, while events keep coming. Measures the time from the end of the
 * command to the last event that the reader gets.
 */
export const revocation = { name: "revocation", measure };

async function measure(context) {
  const stack = await ClusterStack.start(context, nodes, { access, settings });
  const world = new World([...stack.nodes.values()]);
  try {
    await world.start();
    const found = [];
    for (let round = 0; round < rounds; round += 1) found.push(await measureRound(world, round));
    return Object.keys(kinds).map((kind) =>
      toFigure({
        name: `a key revoked, ${nodes} nodes: last event by ${kind}, after the command has returned`,
        unit: "ms",
        values: found.map((lastMs) => lastMs[kind]),
        below: 1_000,
      }),
    );
  } finally {
    await world.stop();
    await stack.stop();
  }
}

/** Returns, for each kind of subscriber, the milliseconds from the end of the command to the last event from any node; 0 if no event came after the command. */
async function measureRound(world, round) {
  const reader = await world.createKey(`reader-${round}`);
  const receivers = [];
  for (const [kind, open] of Object.entries(kinds)) {
    for (const node of world.nodes) {
      const receiver = { kind, count: 0, lastAt: 0, close: () => {} };
      receiver.take = () => {
        receiver.count += 1;
        receiver.lastAt = performance.now();
      };
      receiver.close = await open({ world, node, reader, take: receiver.take });
      receivers.push(receiver);
    }
  }
  await waitFor("every subscriber has events", async () => receivers.every(({ count }) => count > 0));
  await world.nodes[0].key("revoke", reader);
  const returnedAt = performance.now();
  do await wait(silentMs);
  while (receivers.some(({ lastAt }) => performance.now() - lastAt < silentMs));
  for (const { close } of receivers) close();
  const lastOf = (kind) =>
    Math.max(0, ...receivers.filter((one) => one.kind === kind).map(({ lastAt }) => lastAt - returnedAt));
  return Object.fromEntries(Object.keys(kinds).map((kind) => [kind, lastOf(kind)]));
}

/** Nodes, a receiver of callbacks, and a publisher that never stops. */
class World {
  nodes;
  /** For the path of each callback, the function that counts its events. */
  callbacks = new Map();
  #server = createServer((request, response) => {
    this.callbacks.get(request.url)?.();
    request.resume().once("end", () => response.writeHead(204).end());
  });
  #publisher;
  #isOver = false;
  #publishing;

  constructor(guarded) {
    this.nodes = guarded;
  }

  async start() {
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.#publisher = await this.createKey("publisher");
    await this.rest(this.nodes[0], this.#publisher, `open?topic=${topic}`);
    this.#publishing = this.#publish();
  }

  async stop() {
    this.#isOver = true;
    await this.#publishing;
    this.#server.closeAllConnections();
    this.#server.close();
  }

  urlOf(path) {
    return `http://127.0.0.1:${this.#server.address().port}${path}`;
  }

  /** Creates a key, and waits until every node knows it. */
  async createKey(principal) {
    const key = await this.nodes[0].create("--principal", principal, "--role", "member");
    for (const node of this.nodes) {
      await waitFor(
        "the node knows the key",
        async () => typeof (await this.rest(node, key, `exist?topic=${topic}`)) === "boolean",
      );
    }
    return key;
  }

  async rest({ server }, key, call) {
    const headers = { authorization: `Bearer ${key}` };
    return (await fetch(`http://127.0.0.1:${server.port}/rest/${call}`, { headers })).json();
  }

  async #publish() {
    while (!this.#isOver) {
      await this.rest(this.nodes[0], this.#publisher, `publish?topic=${topic}&content=x`);
      await wait(publishEveryMs);
    }
  }
}

async function subscribeCallbacks({ world, node, reader, take }) {
  const path = `/${reader.slice(6, 22)}/${node.server.port}`;
  world.callbacks.set(path, take);
  const answer = await world.rest(
    node,
    reader,
    `subscribe?topic=${topic}&url=${encodeURIComponent(world.urlOf(path))}`,
  );
  if (typeof answer !== "string") throw new Error(JSON.stringify(answer));
  return () => world.callbacks.delete(path);
}

async function openMqtt({ node, reader, take }) {
  const [port, clientId] = [await node.findPort("MQTT"), `c${node.server.port}`];
  const client = await connectAsync({
    host: "127.0.0.1",
    port,
    clientId,
    username: reader,
    protocolVersion: 5,
    reconnectPeriod: 0,
  });
  client.on("message", take);
  client.on("error", () => {});
  await client.subscribeAsync(topic, { qos: 1 });
  return () => client.end(true);
}

async function openStomp({ node, reader, take }) {
  const socket = connectTcp(await node.findPort("STOMP"), "127.0.0.1");
  socket.on("error", () => {});
  socket.on("data", (chunk) => {
    if (chunk.includes("MESSAGE\n")) take();
  });
  socket.write(`CONNECT\naccept-version:1.2\nhost:x\nlogin:${reader}\n\n\0`);
  socket.write(`SUBSCRIBE\nid:1\ndestination:${topic}\nack:auto\n\n\0`);
  return () => socket.destroy();
}

async function openTail({ node, reader, take }) {
  const headers = { authorization: `Bearer ${reader}` };
  const over = new AbortController();
  const { signal } = over;
  const answer = await fetch(`http://127.0.0.1:${node.server.port}/tail?topic=${topic}`, { headers, signal });
  const read = async () => {
    for await (const chunk of answer.body) if (Buffer.from(chunk).includes('\ndata: {"topic')) take();
  };
  read().catch(() => {}); // aborting the request rejects
  return () => over.abort();
}
