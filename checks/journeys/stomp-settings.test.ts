import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { createWebSocketStream, WebSocket } from "ws";
import { Context } from "../conformance/stomp/context.ts";
import { Peer, type Transport } from "../conformance/stomp/peer.ts";
import { portOf } from "../harness/listener-port.ts";
import { until } from "../harness/until.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const heartBeatMs = 1_000;
const running = useWorld(embeddedWorld, {
  env: {
    STELE_STOMP_PORT: "0",
    STELE_STOMP_IMPLICIT_RECEIPTS: "on",
    STELE_STOMP_AUTO_OPEN: "off",
    STELE_STOMP_HEART_BEAT_MS: String(heartBeatMs),
  },
});

const version = "1.2";
const hello = { "accept-version": version, host: "localhost" };

function webSocketAddress(): string {
  return `${running().broker.url.replace(/^http/, "ws")}/stomp`;
}

function createContext(transport: Transport): Context {
  const addresses = { tcp: portOf(running().broker, "STOMP"), websocket: webSocketAddress() };
  return new Context({ addresses, transport, version, cut: "frames", name: `settings/${transport}` });
}

it("/stomp serves a WebSocket client that offers no subprotocol", async () => {
  const webSocket = new WebSocket(webSocketAddress());
  await once(webSocket, "open");
  expect(webSocket.protocol).toBe("");
  const peer = new Peer(createWebSocketStream(webSocket), { transport: "websocket", version, cut: "frames" });
  peer.send("CONNECT", hello);
  expect((await peer.next("CONNECTED")).headers["version"]).toBe(version);
  await peer.ask("DISCONNECT");
  await once(webSocket, "close");
});

describe.each(["tcp", "websocket"] as const)("over %s", (transport) => {
  it("with stompImplicitReceipts, the broker sends a RECEIPT for SUBSCRIBE and UNSUBSCRIBE that did not ask for one", async () => {
    const context = createContext(transport);
    const peer = await context.connect();
    peer.send("SUBSCRIBE", { id: "mine", destination: context.topic });
    expect((await peer.receipt("mine")).headers["subscription-id"]).toMatch(/^[0-9a-f-]{36}$/);
    peer.send("UNSUBSCRIBE", { id: "mine" });
    await peer.receipt("mine");
    context.close();
  });

  it("with stompAutoOpen off, the broker refuses a SEND to a topic that nobody opened, and closes the connection", async () => {
    const context = createContext(transport);
    await running().client.open(context.topic);
    await context.publish("to an open topic");
    const error = await context.expectError((peer) => peer.send("SEND", { destination: `${context.topic}/new` }, "x"));
    expect(error.headers["code"]).toBe("100101");
    context.close();
  });

  it("the broker keeps a client connected while the client sends heart-beats, and disconnects it when they stop", async () => {
    const context = createContext(transport);
    const peer = await context.open();
    peer.send("CONNECT", { ...hello, "heart-beat": `${heartBeatMs},${heartBeatMs}` });
    await peer.next("CONNECTED");
    // Three intervals: the broker disconnects a silent client after two.
    for (let count = 1; count <= 3; count += 1) {
      await until(`${count} heart-beats of the broker have come`, () => peer.reader.beats >= count);
      peer.sendBytes("\n");
    }
    await peer.expectQuiet();
    expect((await peer.expectRefused()).headers["message"]).toContain("no heart-beat");
  });
});
