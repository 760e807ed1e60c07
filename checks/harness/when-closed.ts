import type { EventEmitter } from "node:events";

/** Resolves when a socket has closed. A reset counts too: it happens if the peer closes before it has read everything. */
export function whenClosed(socket: EventEmitter): Promise<void> {
  socket.on("error", () => {});
  return new Promise((resolve) => void socket.once("close", () => resolve()));
}
