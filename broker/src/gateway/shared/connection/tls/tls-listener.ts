import { createServer, type Server } from "node:tls";
import type { ConnectionCallers } from "../../../callers/connection-callers.ts";
import type { Listener, Place } from "../listener.ts";
import type { Connections } from "../connections.ts";
import { certificateReloadMs } from "../limits.ts";
import { socketOptions, SocketServer } from "../socket-server.ts";
import { type Certificate, type CertificateFiles, readCertificate } from "./certificate.ts";

export interface TlsListenerOptions {
  readonly connections: Connections;
  readonly callers: ConnectionCallers;
  /** Of its address, as clients write it. */
  readonly scheme: string;
}

/** Listens for a protocol over TLS 1.2 and 1.3. */
export class TlsListener implements Listener {
  readonly name: string;
  readonly #scheme: string;
  readonly #files: CertificateFiles;
  readonly #connections: Connections;
  readonly #server: Server;
  readonly #sockets: SocketServer;
  #certificate: Certificate;
  #problem: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @throws Error that says what is wrong with the files. */
  constructor(files: CertificateFiles, { connections, callers, scheme }: TlsListenerOptions) {
    const { protocol, connectTimeoutMs, logger } = connections.options;
    this.name = `${protocol} TLS`;
    this.#scheme = scheme;
    this.#files = files;
    this.#connections = connections;
    this.#certificate = readCertificate(files, protocol);
    this.#warnOfExpiry();
    const { cert, key } = this.#certificate;
    const options = { ...socketOptions, cert, key, handshakeTimeout: connectTimeoutMs };
    this.#server = createServer(options, (socket) => connections.serve(socket, callers.of(socket)));
    this.#server.on("tlsClientError", (error, socket) => {
      logger.debug(`TLS handshake for ${protocol} failed`, { error });
      socket.destroy();
    });
    this.#sockets = new SocketServer(this.#server, connections);
  }

  async listen(place: Place): Promise<string> {
    const address = await this.#sockets.listen(place, this.#scheme);
    this.#timer = setInterval(() => this.reload(), certificateReloadMs).unref();
    return address;
  }

  async drain(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sockets.drain();
  }

  async close(): Promise<void> {
    this.#connections.endAll();
  }

  /** Takes a renewed certificate. While the files are wrong, the one before stays, and the log says so once. */
  reload(): void {
    const { logger, protocol } = this.#connections.options;
    try {
      const found = readCertificate(this.#files, protocol);
      this.#problem = undefined;
      if (found.cert.equals(this.#certificate.cert) && found.key.equals(this.#certificate.key)) return;
      this.#certificate = found;
      this.#server.setSecureContext({ cert: found.cert, key: found.key });
      logger.info(`${protocol} certificate renewed`, { file: this.#files.certificateFile, validTo: found.validTo });
      this.#warnOfExpiry();
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem !== this.#problem)
        logger.warn(`${protocol} certificate not renewed; the former one serves on`, { problem });
      this.#problem = problem;
    }
  }

  #warnOfExpiry(): void {
    const { validTo } = this.#certificate;
    if (validTo.getTime() > Date.now()) return;
    const file = this.#files.certificateFile;
    const { logger, protocol } = this.#connections.options;
    logger.warn(`${protocol} certificate has expired; clients refuse it`, { file, validTo });
  }
}
