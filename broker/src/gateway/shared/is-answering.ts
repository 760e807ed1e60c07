import type { Socket } from "node:net";

/** Whether an earlier request of the connection is in progress: the client would take anything written now for its answer. */
export function isAnswering(socket: Socket): boolean {
  // Node keeps the response that owns the socket there, and tests it in its own handlers for this very reason.
  return (socket as Socket & { _httpMessage?: unknown })._httpMessage instanceof Object;
}
