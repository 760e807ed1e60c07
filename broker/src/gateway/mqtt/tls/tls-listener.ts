import { createServer, type Server } from "node:tls";
import type { ConnectionCallers } from "../../callers/connection-callers.ts";
import type { Listener, Place } from "../../shared/connection/listener.ts";
import type { MqttConnections } from "../mqtt-connections.ts";
import { socketOptions, SocketServer } from "../socket-server.ts";
import { type Certificate, type CertificateFiles, readCertificate } from "./certificate.ts";

/** How often the files are read again, in milliseconds: a renewed certificate serves new connections from then on. */
const reloadIntervalMs = 60_000;

export interface TlsListenerParts {
  readonly connections: MqttConnections;
  readonly callers: ConnectionCallers;
}

/** Listens for MQTT over TLS 1.2 and 1.3. */
export class TlsListener implements Listener {
  readonly name = "MQTT TLS";
  readonly #files: CertificateFiles;
  readonly #connections: MqttConnections;
  readonly #server: Server;
  readonly #sockets: SocketServer;
  #certificate: Certificate;
  #problem: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @throws Error that says what is wrong with the files. */
  constructor(files: CertificateFiles, { connections, callers }: TlsListenerParts) {
    this.#files = files;
    this.#connections = connections;
    this.#certificate = readCertificate(files);
    this.#warnOfExpiry();
    const { settings, logger } = connections.options;
    const { cert, key } = this.#certificate;
    const options = { ...socketOptions, cert, key, handshakeTimeout: settings.connectTimeoutMs };
    this.#server = createServer(options, (socket) => connections.serve(socket, callers.of(socket)));
    this.#server.on("tlsClientError", (error, socket) => {
      logger.debug("TLS handshake for MQTT failed", { error });
      socket.destroy();
    });
    this.#sockets = new SocketServer(this.#server, connections);
  }

  async listen(place: Place): Promise<string> {
    const address = await this.#sockets.listen(place, "mqtts");
    this.#timer = setInterval(() => this.reload(), reloadIntervalMs).unref();
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
    const { logger } = this.#connections.options;
    try {
      const found = readCertificate(this.#files);
      this.#problem = undefined;
      if (found.cert.equals(this.#certificate.cert) && found.key.equals(this.#certificate.key)) return;
      this.#certificate = found;
      this.#server.setSecureContext({ cert: found.cert, key: found.key });
      logger.info("MQTT certificate renewed", { file: this.#files.certificateFile, validTo: found.validTo });
      this.#warnOfExpiry();
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem !== this.#problem) logger.warn("MQTT certificate not renewed; the former one serves on", { problem });
      this.#problem = problem;
    }
  }

  #warnOfExpiry(): void {
    const { validTo } = this.#certificate;
    if (validTo.getTime() > Date.now()) return;
    const file = this.#files.certificateFile;
    this.#connections.options.logger.warn("MQTT certificate has expired; clients refuse it", { file, validTo });
  }
}
