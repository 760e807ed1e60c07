import type { Socket } from "node:net";

/** Whether an earlier request of the connection is in progress: the client would take anything written now for its answer. */
export function isAnswering(socket: Socket): boolean {
  // Node stores the response that owns the socket in this property, and its own handlers test it for the same reason.
  return (socket as Socket & { _httpMessage?: unknown })._httpMessage instanceof Object;
}
