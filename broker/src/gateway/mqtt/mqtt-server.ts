import { createServer } from "node:net";
import { createWebSocketStream } from "ws";
import { ConnectionCallers } from "../callers/connection-callers.ts";
import type { Listener, Place } from "../shared/connection/listener.ts";
import type { UpgradeRoute } from "../shared/connection/upgrade.ts";
import { messageBytesSpareMin } from "./limits.ts";
import { MqttConnections, type MqttOptions } from "./mqtt-connections.ts";
import { socketOptions, SocketServer } from "./socket-server.ts";
import type { CertificateFiles } from "./tls/certificate.ts";
import { TlsListener } from "./tls/tls-listener.ts";

/** Listens for MQTT 3.1.1 and 5.0 over TCP; over TLS and WebSocket, its other parts do. */
export class MqttServer implements Listener {
  readonly name = "MQTT";
  readonly #connections: MqttConnections;
  readonly #callers = new ConnectionCallers("MQTT");
  readonly #sockets: SocketServer;

  constructor(options: MqttOptions) {
    this.#connections = new MqttConnections(options);
    const server = createServer(socketOptions, (socket) => {
      this.#connections.serve(socket, this.#callers.of(socket));
    });
    this.#sockets = new SocketServer(server, this.#connections);
  }

  listen(place: Place): Promise<string> {
    return this.#sockets.listen(place, "mqtt");
  }

  drain(): Promise<void> {
    return this.#sockets.drain();
  }

  async close(): Promise<void> {
    this.#connections.endAll();
  }

  /** The same over TLS, for the same connections. @throws Error that says what is wrong with the files. */
  createTlsListener(files: CertificateFiles): TlsListener {
    return new TlsListener(files, { connections: this.#connections, callers: this.#callers });
  }

  /** The same over WebSocket connections (section 6 of both standards). */
  get route(): UpgradeRoute {
    const { packetBytesMax } = this.#connections.options.settings;
    return {
      path: "/mqtt",
      protocol: "MQTT",
      subprotocols: ["mqtt"],
      messageBytesMax: packetBytesMax + Math.max(packetBytesMax, messageBytesSpareMin),
      accept: ({ webSocket, caller }) => {
        // [MQTT-6.0.0-1]: only binary frames carry packets.
        webSocket.on("message", (_, isBinary) => {
          if (!isBinary) webSocket.terminate();
        });
        this.#connections.serve(createWebSocketStream(webSocket), caller);
      },
    };
  }
}
