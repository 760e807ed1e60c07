import { once } from "node:events";
import type { AddressInfo } from "node:net";
import mqttPacket, { type Packet } from "mqtt-packet";
import { expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { testCaller } from "../../engine/testing/as-caller.ts";
import { serve } from "../testing/serve.ts";
import { MqttWorld } from "./testing/mqtt-world.ts";
import { RawClient } from "./testing/raw-client.ts";

/** A server that gives its WebSocket connections to the world. */
async function serveWebSockets(world: MqttWorld): Promise<{ readonly server: WebSocketServer; readonly url: string }> {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  server.on("connection", (webSocket) => {
    world.server.route.accept({ webSocket, caller: testCaller });
  });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // listens on TCP
  return { server, url: `ws://127.0.0.1:${port}` };
}

function toBytes(packet: Packet): Buffer {
  return mqttPacket.generate(packet, { protocolVersion: 4 });
}

function toPublish(topic: string): Buffer {
  return toBytes({ cmd: "publish", topic, payload: "x", qos: 0, dup: false, retain: false });
}

it("counts connections over TCP and WebSocket together", async () => {
  const world = await MqttWorld.start({ connectionsMax: 2 });
  const { server, url } = await serveWebSockets(world);
  await RawClient.connect(world.port, 5, { clientId: "first" });
  const second = new WebSocket(url);
  await once(second, "open");
  const overWebSocket = new WebSocket(url);
  await once(overWebSocket, "close");
  const overTcp = await RawClient.open(world.port, 5);
  await overTcp.closed;
  expect(second.readyState).toBe(WebSocket.OPEN);
  server.close();
  await world.stop();
});

it("publishes neither a packet in a WebSocket text message nor the packets after it, and closes the connection", async () => {
  const world = await MqttWorld.start();
  const { server, url } = await serveWebSockets(world);
  const client = new WebSocket(url);
  await once(client, "open");
  client.send(toBytes({ cmd: "connect", clientId: "text", clean: true, keepalive: 0 }));
  await once(client, "message");
  client.send(toPublish("text").toString("latin1"));
  client.send(toPublish("after"));
  await once(client, "close");
  const writer = await RawClient.connect(world.port, 4);
  writer.send({ cmd: "publish", topic: "last", payload: "x", qos: 1, messageId: 1 });
  await writer.next("puback");
  const found = await Promise.all(["text", "after"].map((topic) => world.broker.exist({ topic, groupId: undefined })));
  expect(found).toEqual([false, false]);
  server.close();
  await world.stop();
});

it("says goodbye to 200 clients over WebSocket at a stop, although the HTTP server stops first", async () => {
  const world = await MqttWorld.start();
  const http = await serve({}, { upgrades: [world.server.route] });
  const address = `${http.url.replace("http", "ws")}/mqtt`;
  const clients = Array.from({ length: 200 }, async (_, number) => {
    const client = new WebSocket(address, ["mqtt"]);
    const packets: Buffer[] = [];
    client.on("message", (data: Buffer) => packets.push(data));
    await once(client, "open");
    const connect = { cmd: "connect", clientId: `c${number}`, clean: true, keepalive: 0, protocolVersion: 5 } as const;
    client.send(mqttPacket.generate(connect, { protocolVersion: 5 }));
    await once(client, "message");
    return { packets, closed: once(client, "close") };
  });
  const connected = await Promise.all(clients);
  await Promise.all([http.close(), world.stop()]);
  await Promise.all(connected.map(({ closed }) => closed));
  const goodbyes = connected.filter(({ packets }) => packets.at(-1)?.toString("hex").startsWith("e0018b"));
  expect(goodbyes).toHaveLength(200);
});
