import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/**
 * Resets a connection, so that the system drops its buffers too. Closes a connection that Node cannot reset: over TLS, `resetAndDestroy` throws; right after
 * `end` has written the last bytes, it would leave the socket open for ever.
 */
export function resetConnection(socket: Socket): void {
  const isEnding = socket.writableEnded && socket.writableLength === 0;
  if (socket instanceof TLSSocket || isEnding) socket.destroy();
  else socket.resetAndDestroy();
}
