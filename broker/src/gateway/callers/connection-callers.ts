import type { Socket } from "node:net";
import type { FastifyRequest } from "fastify";
import { anonymous, type Caller, type Principal, type Protocol } from "../../engine/access/caller.ts";
import type { ClientCertificate } from "../../engine/access/credential.ts";
import { certificateOf } from "./client-certificate.ts";

interface Held {
  /** Of the latest request. */
  readonly caller: Caller;
  readonly callers: Map<Principal, Caller>;
}

/** The callers of one protocol: one for each connection and principal, made with its first call. */
export class ConnectionCallers {
  readonly #protocol: Protocol;
  readonly #bySocket = new WeakMap<Socket, Held>();

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  /** Whoever sent a request. */
  ofRequest({ raw, principal }: Pick<FastifyRequest, "raw" | "principal">): Caller {
    return this.of(raw.socket, principal);
  }

  /** A protocol may bring the principal later, see `logIn`. */
  of(socket: Socket, principal: Principal = anonymous): Caller {
    const held = this.#bySocket.get(socket);
    if (held?.caller.principal === principal) return held.caller;
    const certificate = held === undefined ? certificateOf(socket) : held.caller.certificate;
    const caller =
      held?.callers.get(principal) ?? new ConnectionCaller(socket, this.#protocol, { principal, certificate });
    const callers = held?.callers ?? new Map<Principal, Caller>();
    this.#bySocket.set(socket, { caller, callers: callers.set(principal, caller) });
    return caller;
  }
}

class ConnectionCaller implements Caller {
  readonly principal: Principal;
  readonly address: string | undefined;
  readonly protocol: Protocol;
  readonly certificate: ClientCertificate | undefined;
  readonly #socket: Socket;
  #signal: AbortSignal | undefined;

  constructor(
    socket: Socket,
    protocol: Protocol,
    { principal, certificate }: Pick<Caller, "principal" | "certificate">,
  ) {
    this.#socket = socket;
    this.principal = principal;
    this.certificate = certificate;
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
