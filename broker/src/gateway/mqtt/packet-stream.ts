import type { Duplex } from "node:stream";
import { createWebSocketStream, type WebSocket } from "ws";
import { protocolError } from "./codec/packet-error.ts";

type Take = (this: WebSocket, data: Buffer, isBinary: boolean) => void;

/** The bytes of a WebSocket connection. Only binary messages carry packets; a text message ends the connection, and nothing of it is read ([MQTT-6.0.0-1]). */
export function createPacketStream(webSocket: WebSocket): Duplex {
  const stream = createWebSocketStream(webSocket);
  const listeners = webSocket.listeners("message") as Take[]; // The listeners of the stream, as `ws` calls them.
  webSocket.removeAllListeners("message");
  webSocket.on("message", (data: Buffer, isBinary: boolean) => {
    if (stream.destroyed) return; // Messages of the same chunk still follow.
    if (isBinary) for (const take of listeners) take.call(webSocket, data, isBinary);
    else stream.destroy(protocolError("a WebSocket message is text, and only binary ones carry packets"));
  });
  return stream;
}
