import type { Server, Socket } from "node:net";
import type { Broker } from "../../../engine/broker.ts";

type Gate = Pick<Broker, "mayConnect">;

/** The internal handle of a listening `net` server. `status` is 0 if there is a client. */
interface ServerHandle {
  onconnection(status: number, client: ClientHandle | undefined): void;
}

/** A connection before `net` makes a socket of it. */
interface ClientHandle {
  getpeername(name: { address?: string }): number;
  /** Closes with a reset; returns 0 on success. Called without its optional callback, which would make it a third slower. */
  reset(): number;
  close(): void;
}

/**
 * Closes new connections that the broker refuses, before any byte is read and before TLS begins. Creating a socket takes longer than the rest of a refusal, and
 * `net` creates the socket before it reports a connection. So this replaces the internal handler of `net`, if Node has it.
 */
export function closeFloods(server: Server, broker: Gate, findHandle = handleOf): void {
  server.once("listening", () => {
    const handle = findHandle(server);
    if (handle === undefined) gateSockets(server, broker);
    else gateHandle(handle, broker);
  });
}

/** The internal handle of a server; undefined in a version of Node without its handler `onconnection`. */
function handleOf(server: Server): ServerHandle | undefined {
  const { _handle: handle } = server as { _handle?: Partial<ServerHandle> | null }; // As in lib/net.js of Node 20 to 24.
  return typeof handle?.onconnection === "function" ? (handle as ServerHandle) : undefined;
}

function gateHandle(handle: ServerHandle, broker: Gate): void {
  const accept = handle.onconnection.bind(handle);
  handle.onconnection = (status, client) => {
    if (client === undefined || broker.mayConnect(() => peerOf(client))) accept(status, client);
    else if (client.reset() !== 0) client.close();
  };
}

function peerOf(client: ClientHandle): string | undefined {
  const name: { address?: string } = {};
  client.getpeername(name);
  return name.address;
}

/** Wraps the `connection` listeners that are registered so far: a refused connection reaches none of them. */
function gateSockets(server: Server, broker: Gate): void {
  const listeners = server.listeners("connection") as ((socket: Socket) => void)[]; // As Node calls them.
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    if (broker.mayConnect(() => socket.remoteAddress)) for (const listener of listeners) listener.call(server, socket);
    else refuse(socket);
  });
}

/** Closes a connection by a reset, after which the system has no state to keep. */
function refuse(socket: Socket): void {
  socket.on("error", () => {}); // The client may have reset it already.
  socket.resetAndDestroy();
}
