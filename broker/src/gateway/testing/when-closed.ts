import type { EventEmitter } from "node:events";

/** Resolves when a socket has closed, also by a reset: a peer may close before it has read all that was sent to it. */
export function whenClosed(socket: EventEmitter): Promise<void> {
  socket.on("error", () => {});
  return new Promise((resolve) => void socket.once("close", () => resolve()));
}
