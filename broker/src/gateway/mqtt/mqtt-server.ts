import { createServer, type Server } from "node:net";
import type { Duplex } from "node:stream";
import { createWebSocketStream } from "ws";
import type { Caller } from "../../engine/access/caller.ts";
import { ConnectionCallers } from "../callers/connection-callers.ts";
import type { Listener, Place } from "../shared/connection/listener.ts";
import type { UpgradeRoute } from "../shared/connection/upgrade.ts";
import { Connection, type ConnectionParts } from "./connection.ts";
import { LostPublishes } from "./lost-publishes.ts";
import { probeAfterMs } from "./limits.ts";
import { reason } from "./reason-codes.ts";
import { KnownTopics } from "./topic-opener.ts";

export interface MqttServerOptions extends Omit<ConnectionParts, "known" | "losses" | "caller" | "onClosed"> {
  /** Connections open at once, over TCP and WebSocket together; further ones are closed at once. */
  readonly connectionsMax: number;
}

const socketOptions = { noDelay: true, allowHalfOpen: true, keepAlive: true, keepAliveInitialDelay: probeAfterMs };

/** Listens for MQTT 3.1.1 and 5.0 over TCP. */
export class MqttServer implements Listener {
  readonly name = "MQTT";
  readonly #options: MqttServerOptions;
  readonly #known = new KnownTopics();
  readonly #losses: LostPublishes;
  readonly #callers = new ConnectionCallers("MQTT");
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  #draining: Promise<void> | undefined;

  constructor(options: MqttServerOptions) {
    this.#options = options;
    this.#losses = new LostPublishes(options.logger);
    this.#server = createServer(socketOptions, (socket) => {
      this.#serve(socket, this.#callers.of(socket));
    });
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

  /** The same over WebSocket connections (section 6 of both standards). */
  get route(): UpgradeRoute {
    return {
      path: "/mqtt",
      protocol: "MQTT",
      subprotocols: ["mqtt"],
      messageBytesMax: this.#options.settings.packetBytesMax,
      accept: ({ webSocket, caller }) => {
        // [MQTT-6.0.0-1]: only binary frames carry packets.
        webSocket.on("message", (_, isBinary) => {
          if (!isBinary) webSocket.terminate();
        });
        this.#serve(createWebSocketStream(webSocket), caller);
      },
    };
  }

  #serve(stream: Duplex, caller: Caller): void {
    if (this.#connections.size >= this.#options.connectionsMax) {
      stream.destroy();
      return;
    }
    const onClosed = (closed: Connection): void => void this.#connections.delete(closed);
    const shared = { known: this.#known, losses: this.#losses };
    this.#connections.add(new Connection(stream, { ...this.#options, ...shared, caller, onClosed }));
  }
}
