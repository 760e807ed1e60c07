import { createServer, type Server } from "node:tls";
import type { ConnectionCallers } from "../../../callers/connection-callers.ts";
import type { Listener, Place } from "../listener.ts";
import type { Connections } from "../connections.ts";
import { socketOptions, SocketServer } from "../socket-server.ts";
import type { CertificateFiles } from "./certificate.ts";
import { endAtExpiry } from "./end-at-expiry.ts";
import { RenewedCertificate } from "./renewed-certificate.ts";

export interface TlsListenerOptions {
  readonly connections: Connections;
  readonly callers: ConnectionCallers;
  /** The URL scheme of the listener's address, such as `mqtts`. */
  readonly scheme: string;
}

/** Listens for a protocol over TLS 1.2 and 1.3. */
export class TlsListener implements Listener {
  readonly name: string;
  readonly #scheme: string;
  readonly #connections: Connections;
  readonly #server: Server;
  readonly #sockets: SocketServer;
  readonly #certificate: RenewedCertificate;

  /** @throws Error that says what is wrong with the files. */
  constructor(files: CertificateFiles, { connections, callers, scheme }: TlsListenerOptions) {
    const { protocol, connectTimeoutMs, logger } = connections.options;
    this.name = `${protocol} TLS`;
    this.#scheme = scheme;
    this.#connections = connections;
    this.#certificate = new RenewedCertificate({ files, protocol, logger });
    const options = { ...socketOptions, ...this.#certificate.serverOptions, handshakeTimeout: connectTimeoutMs };
    this.#server = createServer(options, (socket) => {
      connections.serve(socket, callers.of(socket));
      endAtExpiry(socket);
    });
    this.#server.on("tlsClientError", (error, socket) => {
      logger.debug(`TLS handshake for ${protocol} failed`, { error });
      socket.destroy();
    });
    this.#sockets = new SocketServer(this.#server, connections);
  }

  async listen(place: Place): Promise<string> {
    const address = await this.#sockets.listen(place, this.#scheme);
    this.#certificate.watchFor(this.#server);
    return address;
  }

  findWarning(): string | undefined {
    return this.#certificate.findWarning();
  }

  async drain(delayMs?: number): Promise<void> {
    this.#certificate.stop();
    await this.#sockets.drain(delayMs);
  }

  async close(): Promise<void> {
    await this.#connections.endAll();
  }

  /** Reloads the certificate, see {@link RenewedCertificate.reload}. */
  reload(): void {
    this.#certificate.reload(this.#server);
  }
}
