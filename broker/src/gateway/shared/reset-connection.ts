import { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/** Resets a connection, so that the system drops its buffers too. */
export function resetConnection(socket: Socket): void {
  if (!(socket instanceof TLSSocket)) return void socket.resetAndDestroy();
  // `resetAndDestroy` throws for a TLS socket. The socket below it, which closes it too, is in this internal property in Node 20 to 24.
  const { _parent: below } = socket as { _parent?: unknown };
  if (below instanceof Socket) below.resetAndDestroy();
  else socket.destroy();
}
