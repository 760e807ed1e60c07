import { EndpointAddress } from "./address.ts";
import type { Connection, ConnectionOptions } from "./connection.ts";
import { HttpConnection } from "./http-connection.ts";
import { openIpc } from "./ipc-channel.ts";
import { SocketConnection } from "./socket-connection.ts";
import { openWebSocket } from "./ws-channel.ts";

/** Creates the connection for an address with the scheme `http`, `https`, `ws`, `wss` or `ipc`. It connects at the first request. */
export function createConnection(text: string, options: ConnectionOptions): Connection {
  const address = new EndpointAddress(text);
  if (text.startsWith("ipc:")) {
    return new SocketConnection(address, { ...options, open: (events) => openIpc(address, events) });
  }
  return text.startsWith("ws")
    ? new SocketConnection(address, { ...options, open: (events) => openWebSocket(address, events) })
    : new HttpConnection(address, options);
}
