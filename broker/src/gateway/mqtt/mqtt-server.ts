import type { TimeSlices } from "../../lib/time-slices.ts";
import type { ConnectionMemory } from "../shared/connection/memory.ts";
import { Connections } from "../shared/connection/connections.ts";
import { createConnectionLog } from "../shared/connection/connection-log.ts";
import { createLoopSlices } from "../../lib/system/loop-slices.ts";
import { SocketListener } from "../shared/connection/socket-listener.ts";
import type { UpgradeRoute } from "../shared/connection/upgrade.ts";
import { Connection } from "./connection.ts";
import type { ConnectionParts } from "./connection-parts.ts";
import { Encodings } from "./encodings.ts";
import { messageBytesSpareMin } from "./limits.ts";
import { LostPublishes } from "./lost-publishes.ts";
import { createPacketStream } from "./packet-stream.ts";

export interface MqttOptions extends Omit<ConnectionParts, "log" | "losses" | "encodings" | "slices"> {
  /** Time slices of the event loop; the listener creates its own if left out. */
  readonly slices?: TimeSlices | undefined;
  /** Connections open at once, over all transports together; further ones are closed immediately. */
  readonly connectionsMax: number;
  /** Shared with the other protocols whose clients hold a connection. */
  readonly memory: ConnectionMemory;
}

/** Listens for MQTT 3.1.1 and 5.0 over TCP. `createTlsListener` and `route` add TLS and WebSocket. */
export class MqttServer extends SocketListener {
  readonly #packetBytesMax: number;

  constructor(options: MqttOptions) {
    super(toConnections(options), { plain: "mqtt", tls: "mqtts" });
    this.#packetBytesMax = options.settings.packetBytesMax;
  }

  /** The route for WebSocket connections (section 6 of both standards). */
  get route(): UpgradeRoute {
    const packetBytesMax = this.#packetBytesMax;
    return {
      path: "/mqtt",
      protocol: "MQTT",
      subprotocols: ["mqtt"],
      needsSubprotocol: true,
      messageBytesMax: packetBytesMax + Math.max(packetBytesMax, messageBytesSpareMin),
      accept: ({ webSocket, caller }) => this.connections.serve(createPacketStream(webSocket), caller),
      endAll: () => this.connections.endAll(),
    };
  }
}

function toConnections(options: MqttOptions): Connections {
  const { connectionsMax, settings, logger, metrics, slices = createLoopSlices() } = options;
  const parts = {
    ...options,
    slices,
    log: createConnectionLog(logger),
    losses: new LostPublishes(logger, metrics),
    encodings: new Encodings(settings.extensionPrefix),
  };
  return new Connections({
    protocol: "MQTT",
    connectionsMax,
    connectTimeoutMs: settings.connectTimeoutMs,
    broker: options.broker,
    logger,
    metrics,
    create: (stream, caller, onClosed) => new Connection(stream, parts, { caller, onClosed }),
  });
}
