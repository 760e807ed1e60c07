import type { EventEmitter } from "node:events";

/** Resolves when a socket has closed, even by a reset: a peer may close before it has read everything. */
export function whenClosed(socket: EventEmitter): Promise<void> {
  socket.on("error", () => {});
  return new Promise((resolve) => void socket.once("close", () => resolve()));
}
