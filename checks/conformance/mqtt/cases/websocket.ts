import { once } from "node:events";
import { expect } from "vitest";
import { WebSocket } from "ws";
import { connect, packet, properties, uint16, utf8 } from "../bytes.ts";
import type { Case } from "../case.ts";

async function openWebSocket(address: string): Promise<WebSocket> {
  const webSocket = new WebSocket(address, ["other", "mqtt"]);
  await once(webSocket, "open");
  return webSocket;
}

export const webSocketCases: readonly Case[] = [
  {
    name: "the broker chooses the subprotocol mqtt, and closes after a text frame",
    v4: ["6.0.0-1", "6.0.0-4"],
    v5: ["6.0.0-1", "6.0.0-4"],
    run: async (context) => {
      const webSocket = await openWebSocket(context.addresses.websocket);
      expect(webSocket.protocol).toBe("mqtt");
      webSocket.send("text");
      await once(webSocket, "close");
    },
  },
  {
    name: "packets may begin and end anywhere in WebSocket frames",
    v4: ["6.0.0-2"],
    v5: ["6.0.0-2"],
    run: async (context) => {
      const webSocket = await openWebSocket(context.addresses.websocket);
      const bytes = Buffer.concat([connect(context.version), Buffer.of(0xc0, 0, 0xc0, 0)]);
      const received: Buffer[] = [];
      const answered = new Promise<void>((resolve) => {
        webSocket.on("message", (chunk: Buffer) => {
          received.push(chunk);
          if (Buffer.concat(received).toString("hex").endsWith("d000d000")) resolve();
        });
      });
      webSocket.send(bytes.subarray(0, 3));
      webSocket.send(bytes.subarray(3, -3));
      webSocket.send(bytes.subarray(-3));
      await answered;
      webSocket.terminate();
    },
  },
  {
    name: "one WebSocket message may carry packets that together exceed Maximum Packet Size",
    v4: ["6.0.0-2"],
    v5: ["6.0.0-2"],
    run: async (context) => {
      const peer = await context.connect();
      const ids = Array.from({ length: 20 }, (_, index) => index + 1);
      const content = Buffer.alloc(30_000, "x");
      const empty = properties(context.version);
      peer.sendBytes(...ids.map((id) => packet(0x32, utf8(context.topic), uint16(id), empty, content)));
      for (const messageId of ids) expect(await peer.next("puback")).toMatchObject({ messageId });
    },
  },
  {
    name: "a packet above Maximum Packet Size that fills one message is refused with 0x95",
    v5: ["3.2.2-15", "6.0.0-2"],
    run: async (context) => {
      const peer = await context.connect();
      const content = Buffer.alloc(600_000, "x");
      peer.sendBytes(packet(0x30, utf8(context.topic), properties(context.version), content));
      await peer.expectEnded(0x95);
    },
  },
];
