import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { anonymous, type Caller, type Principal, type Protocol } from "../../engine/access/caller.ts";
import type { ClientCertificate } from "../../engine/access/credential.ts";
import type { Broker } from "../../engine/broker.ts";
import { certificateOf } from "./client-certificate.ts";
import { readCredential } from "./credential.ts";

interface Held {
  /** Of the latest request, and who gave it. */
  credential: string | undefined;
  caller: Caller;
  readonly callers: Map<Principal, Caller>;
}

/** The callers of one protocol: one for each connection and principal, made with its first call. */
export class ConnectionCallers {
  readonly #protocol: Protocol;
  readonly #broker: Pick<Broker, "authenticate"> | undefined;
  readonly #bySocket = new WeakMap<Socket, Held>();

  /** Without a broker nobody's credential is read here: a protocol may bring it later, see `logIn`. */
  constructor(protocol: Protocol, broker?: Pick<Broker, "authenticate">) {
    this.#protocol = protocol;
    this.#broker = broker;
  }

  /** Whoever sent a request, by its `Authorization` header. */
  ofRequest({ socket, headers }: Pick<IncomingMessage, "socket" | "headers">): Caller {
    return this.of(socket, readCredential(headers.authorization));
  }

  of(socket: Socket, credential?: string): Caller {
    const held = this.#bySocket.get(socket);
    // What was wrong may be right by now: the key may be a new one.
    if (held !== undefined && held.credential === credential && held.caller.principal.kind !== "rejected") {
      return held.caller;
    }
    const certificate = held === undefined ? certificateOf(socket) : held.caller.certificate;
    const principal = this.#broker?.authenticate(credential, certificate) ?? anonymous;
    const caller =
      held?.callers.get(principal) ?? new ConnectionCaller(socket, this.#protocol, { principal, certificate });
    const callers = held?.callers ?? new Map<Principal, Caller>();
    this.#bySocket.set(socket, { credential, caller, callers: callers.set(principal, caller) });
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
