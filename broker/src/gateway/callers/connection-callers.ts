import type { Socket } from "node:net";
import type { FastifyRequest } from "fastify";
import { anonymous, type Caller, type Principal, type Protocol } from "../../engine/access/caller.ts";
import type { ClientCertificate } from "../../engine/access/credential.ts";
import { certificateOf } from "./client-certificate.ts";

interface Held {
  /** Caller of the latest request. */
  readonly caller: ConnectionCaller;
  readonly callers: Map<Principal, ConnectionCaller>;
}

/** Maximum number of cached callers per connection; one more empties the cache. A proxy may send the requests of many clients over one connection. */
const callersKeptMax = 100;

/** Creates the callers of one protocol. A connection caches one caller per principal, with the client address that the principal used last. */
export class ConnectionCallers {
  readonly #protocol: Protocol;
  readonly #bySocket = new WeakMap<Socket, Held>();

  constructor(protocol: Protocol) {
    this.#protocol = protocol;
  }

  /** The caller that sent a request. */
  ofRequest({ raw, principal, forwardedFor }: Pick<FastifyRequest, "raw" | "principal" | "forwardedFor">): Caller {
    return this.of(raw.socket, { principal, forwardedFor });
  }

  /** The caller of a connection. A protocol whose clients log in later replaces the caller, see `logIn`. */
  of(socket: Socket, { principal = anonymous, forwardedFor }: Sender = {}): Caller {
    const held = this.#bySocket.get(socket);
    if (held?.caller.principal === principal && held.caller.isOf(forwardedFor)) return held.caller;
    const callers = held?.callers ?? new Map<Principal, ConnectionCaller>();
    const known = callers.get(principal);
    const caller = known?.isOf(forwardedFor) === true ? known : this.#create(socket, { principal, forwardedFor }, held);
    if (known === undefined && callers.size >= callersKeptMax) callers.clear();
    this.#bySocket.set(socket, { caller, callers: callers.set(principal, caller) });
    return caller;
  }

  #create(socket: Socket, client: Omit<Client, "certificate">, held: Held | undefined): ConnectionCaller {
    const certificate = held === undefined ? certificateOf(socket) : held.caller.certificate;
    return new ConnectionCaller(socket, this.#protocol, { ...client, certificate });
  }
}

type Sender = Partial<Pick<FastifyRequest, "principal" | "forwardedFor">>;

interface Client extends Pick<Caller, "principal" | "certificate"> {
  /** The client's address according to a trusted proxy; undefined for none. */
  readonly forwardedFor: string | undefined;
}

class ConnectionCaller implements Caller {
  readonly principal: Principal;
  readonly address: string | undefined;
  readonly protocol: Protocol;
  readonly certificate: ClientCertificate | undefined;
  readonly #forwardedFor: string | undefined;
  readonly #socket: Socket;

  constructor(socket: Socket, protocol: Protocol, { principal, certificate, forwardedFor }: Client) {
    this.#socket = socket;
    this.principal = principal;
    this.certificate = certificate;
    this.#forwardedFor = forwardedFor;
    this.address = forwardedFor ?? socket.remoteAddress;
    this.protocol = protocol;
  }

  /** Whether this caller has the given forwarded address. */
  isOf(forwardedFor: string | undefined): boolean {
    return this.#forwardedFor === forwardedFor;
  }

  /** Aborts when the connection ends. Created on first use: most connections only publish, and a publish cannot be cancelled. */
  get signal(): AbortSignal {
    return signalOf(this.#socket);
  }
}

/** One signal for all callers of a connection: a proxy may send the requests of any number of clients over it. */
const signals = new WeakMap<Socket, AbortSignal>();

function signalOf(socket: Socket): AbortSignal {
  const known = signals.get(socket);
  if (known !== undefined) return known;
  const signal = abortWith(socket);
  signals.set(socket, signal);
  return signal;
}

function abortWith(socket: Socket): AbortSignal {
  if (socket.destroyed) return AbortSignal.abort();
  const ended = new AbortController();
  socket.once("close", () => ended.abort());
  return ended.signal;
}
