import { createServer, type Server, type Socket } from "node:net";
import type { Listener, Place } from "../shared/connection/listener.ts";
import { Connection, type ConnectionParts } from "./connection.ts";
import { reason } from "./reason-codes.ts";
import { KnownTopics } from "./topic-opener.ts";

export interface MqttServerOptions extends Omit<ConnectionParts, "known" | "address" | "onClosed"> {
  /** Connections open at once; further ones are closed at once. */
  readonly connectionsMax: number;
}

/** Listens for MQTT 3.1.1 and 5.0 over TCP. */
export class MqttServer implements Listener {
  readonly name = "MQTT";
  readonly #options: MqttServerOptions;
  readonly #known = new KnownTopics();
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  #draining: Promise<void> | undefined;

  constructor(options: MqttServerOptions) {
    this.#options = options;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
    this.#server.maxConnections = options.connectionsMax;
  }

  async listen({ host, port }: Place): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port }, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("a TCP server has no TCP address");
    return `mqtt://${address.family === "IPv6" ? `[${address.address}]` : address.address}:${address.port}`;
  }

  /** Tells clients of 5.0 that the broker stops; what they published and was not acknowledged they will send again. */
  async drain(): Promise<void> {
    this.#draining ??= new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const connection of this.#connections) connection.end(reason.shuttingDown);
    });
    await this.#draining;
  }

  async close(): Promise<void> {
    for (const connection of this.#connections) connection.end(reason.shuttingDown);
  }

  #accept(socket: Socket): void {
    const connection = new Connection(socket, {
      ...this.#options,
      known: this.#known,
      address: socket.remoteAddress,
      onClosed: (closed) => this.#connections.delete(closed),
    });
    this.#connections.add(connection);
  }
}
