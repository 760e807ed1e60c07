import type { Socket } from "node:net";
import { anonymous, type Caller, type Protocol } from "../../engine/access/caller.ts";

/** The callers of one protocol: one for each connection, made with its first call. */
export class ConnectionCallers {
  readonly #protocol: Protocol;
  readonly #bySocket = new WeakMap<Socket, Caller>();

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  of(socket: Socket): Caller {
    const known = this.#bySocket.get(socket);
    if (known !== undefined) return known;
    const caller = new ConnectionCaller(socket, this.#protocol);
    this.#bySocket.set(socket, caller);
    return caller;
  }
}

class ConnectionCaller implements Caller {
  readonly principal = anonymous;
  readonly address: string | undefined;
  readonly protocol: Protocol;
  readonly #socket: Socket;
  #signal: AbortSignal | undefined;

  constructor(socket: Socket, protocol: Protocol) {
    this.#socket = socket;
    this.address = socket.remoteAddress;
    this.protocol = protocol;
  }

  /** Made when first asked for: most connections only publish, which nobody can call back. */
  get signal(): AbortSignal {
    this.#signal ??= abortWith(this.#socket);
    return this.#signal;
  }
}

function abortWith(socket: Socket): AbortSignal {
  if (socket.destroyed) return AbortSignal.abort();
  const ended = new AbortController();
  socket.once("close", () => ended.abort());
  return ended.signal;
}
