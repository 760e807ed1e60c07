// The suites speak plain TCP. A bridge accepts their connections and forwards them over TLS or WebSocket.
import { once } from "node:events";
import { createServer } from "node:net";
import { pipeline } from "node:stream";
import { connect as connectTls } from "node:tls";
import { createWebSocketStream, WebSocket } from "ws";

/** Listens on a port for plain TCP, and forwards each connection to a stream that `open` opens to the broker. */
export async function startBridge(open) {
  const server = createServer((socket) => {
    const onward = open();
    pipeline(socket, onward, () => onward.destroy());
    pipeline(onward, socket, () => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: server.address().port, close: () => server.close() };
}

/** Connects over TLS to `address`, such as mqtts://127.0.0.1:8883. Trusts only certificates that `authority` signed. */
export function openTls(address, authority) {
  const { hostname, port } = new URL(address);
  return connectTls({ host: hostname, port: Number(port), ca: authority, servername: "localhost" });
}

/** Connects over WebSocket to `address`, such as ws://127.0.0.1:8080/mqtt. */
export function openWebSocket(address) {
  return createWebSocketStream(new WebSocket(address, "mqtt"));
}
