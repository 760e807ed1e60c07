import { createServer, type Server, type Socket } from "node:net";
import type { Broker } from "../../engine/broker.ts";
import type { Logger } from "../../lib/logger.ts";
import { Connection, type ConnectionParts } from "./connection.ts";
import { reason } from "./reason-codes.ts";
import { KnownTopics } from "./topic-opener.ts";

export interface MqttServerOptions {
  readonly broker: Broker;
  readonly logger: Logger;
  readonly extensionPrefix: string;
  readonly opensTopics: boolean;
  readonly newClientId: () => string;
  readonly connectionsMax: number;
}

/** Listens for MQTT 3.1.1 and 5.0 over TCP. */
export class MqttServer {
  readonly #parts: ConnectionParts;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();

  constructor(options: MqttServerOptions) {
    this.#parts = {
      ...options,
      known: new KnownTopics(),
      onClosed: (connection) => this.#connections.delete(connection),
    };
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
    this.#server.maxConnections = options.connectionsMax;
  }

  /** Answers the port. */
  async listen({ host, port }: { readonly host: string; readonly port: number }): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port }, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : port;
  }

  /** Takes no connection any more, and ends those that there are. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const connection of this.#connections) connection.end(reason.shuttingDown);
    await closed;
  }

  #accept(socket: Socket): void {
    this.#connections.add(new Connection(socket, this.#parts));
  }
}
