import { isUtf8 } from "node:buffer";
import type { Duplex } from "node:stream";
import { createWebSocketStream, type WebSocket } from "ws";

/**
 * The bytes of a WebSocket connection. A client that began with text gets text messages for valid UTF-8, since some clients can read nothing else.
 * A client that began with binary messages gets binary ones.
 */
export function createByteStream(webSocket: WebSocket): Duplex {
  let isText = true;
  webSocket.once("message", (_, isBinary) => {
    isText = !isBinary;
  });
  const stream = createWebSocketStream(webSocket);
  stream._write = (chunk: Buffer, _, callback) => {
    const isOpen = (): boolean => webSocket.readyState === webSocket.OPEN;
    // Node reports no error for a write that the end of the connection interrupted.
    const ended = (error?: Error | null): void =>
      callback(error ?? (isOpen() ? null : new Error("the WebSocket connection is closing")));
    if (isOpen()) webSocket.send(chunk, { binary: !isText || !isUtf8(chunk) }, ended);
    else ended();
  };
  return stream;
}
