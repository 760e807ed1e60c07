import type { Server, Socket } from "node:net";
import type { Broker } from "../../../engine/broker.ts";

/**
 * Closes new connections that the broker does not take before anything is read from them, and before TLS begins. Comes after every listener of the server
 * that a connection costs something.
 */
export function closeFloods(server: Server, broker: Pick<Broker, "mayConnect">): void {
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
