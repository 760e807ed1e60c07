import type { Server, Socket } from "node:net";
import type { Broker } from "../../../engine/broker.ts";

type Gate = Pick<Broker, "mayConnect">;

/** What a listening server of `net` has inside. The first argument is 0 where there is a client. */
interface ServerHandle {
  onconnection(status: number, client: ClientHandle | undefined): void;
}

/** A connection before `net` makes a socket of it. */
interface ClientHandle {
  getpeername(name: { address?: string }): number;
  /** Closes with a reset. Answers 0 if it can. A call when it is closed would take a third of the time. */
  reset(): number;
  close(): void;
}

/**
 * Closes new connections that the broker does not take before anything is read from them, and before TLS begins. Making a socket takes longer than all the
 * rest of a refusal, and `net` tells of a connection only with its socket; so its own handler is replaced where it is found.
 */
export function closeFloods(server: Server, broker: Gate, findHandle = handleOf): void {
  server.once("listening", () => {
    const handle = findHandle(server);
    if (handle === undefined) gateSockets(server, broker);
    else gateHandle(handle, broker);
  });
}

/** Undefined in a version of Node that has it no more. */
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

/** Comes after every listener of the server that a connection costs something. */
function gateSockets(server: Server, broker: Gate): void {
  const listeners = server.listeners("connection") as ((socket: Socket) => void)[]; // As Node calls them.
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    if (broker.mayConnect(() => socket.remoteAddress)) for (const listener of listeners) listener.call(server, socket);
    else refuse(socket);
  });
}

/** A reset leaves nothing for the system to wait for. */
function refuse(socket: Socket): void {
  socket.on("error", () => {}); // The client may have reset it already.
  socket.resetAndDestroy();
}
