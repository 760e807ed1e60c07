import { createServer } from "node:net";
import { ConnectionCallers } from "../../callers/connection-callers.ts";
import type { Connections } from "./connections.ts";
import type { Listener, Place } from "./listener.ts";
import { socketOptions, SocketServer } from "./socket-server.ts";
import type { CertificateFiles } from "./tls/certificate.ts";
import { TlsListener } from "./tls/tls-listener.ts";

export interface SocketSchemes {
  /** URL scheme of an address over TCP. */
  readonly plain: string;
  /** URL scheme of an address over TLS. */
  readonly tls: string;
}

/** Listens for a protocol over TCP. The listeners for TLS and WebSocket add to the same connections. */
export class SocketListener implements Listener {
  readonly name: string;
  protected readonly connections: Connections;
  readonly #schemes: SocketSchemes;
  readonly #callers: ConnectionCallers;
  readonly #sockets: SocketServer;

  constructor(connections: Connections, schemes: SocketSchemes) {
    this.name = connections.options.protocol;
    this.connections = connections;
    this.#schemes = schemes;
    this.#callers = new ConnectionCallers(connections.options.protocol);
    const server = createServer(socketOptions, (socket) => connections.serve(socket, this.#callers.of(socket)));
    this.#sockets = new SocketServer(server, connections);
  }

  listen(place: Place): Promise<string> {
    return this.#sockets.listen(place, this.#schemes.plain);
  }

  drain(delayMs?: number): Promise<void> {
    return this.#sockets.drain(delayMs);
  }

  async close(): Promise<void> {
    await this.connections.endAll();
  }

  /** Creates the listener over TLS for the same connections. @throws Error that says what is wrong with the files. */
  createTlsListener(files: CertificateFiles): TlsListener {
    const { connections } = this;
    return new TlsListener(files, { connections, callers: this.#callers, scheme: this.#schemes.tls });
  }
}
