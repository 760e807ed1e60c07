import type { TimeSlices } from "../../lib/time-slices.ts";
import { Connections } from "../shared/connection/connections.ts";
import { createConnectionLog } from "../shared/connection/connection-log.ts";
import { SocketListener } from "../shared/connection/socket-listener.ts";
import { createLoopSlices } from "../../lib/system/loop-slices.ts";
import type { UpgradeRoute } from "../shared/connection/upgrade.ts";
import { Connection, type ConnectionParts } from "./connection.ts";
import { headBytesMax, messageBytesSpareMin } from "./limits.ts";
import { createByteStream } from "./websocket-stream.ts";

export interface StompOptions extends Omit<ConnectionParts, "caller" | "log" | "onClosed" | "slices"> {
  /** Time slices of the event loop; the listener creates its own if left out. */
  readonly slices?: TimeSlices | undefined;
  /** Connections open at once, over all transports together; further ones are closed immediately. */
  readonly connectionsMax: number;
}

/** Listens for STOMP 1.0, 1.1 and 1.2 over TCP. `createTlsListener` and `route` add TLS and WebSocket. */
export class StompServer extends SocketListener {
  readonly #bodyBytesMax: number;

  constructor(options: StompOptions) {
    super(toConnections(options), { plain: "stomp", tls: "stomp+ssl" });
    this.#bodyBytesMax = options.settings.bodyBytesMax;
  }

  /** The route for WebSocket connections, with text or binary messages. */
  get route(): UpgradeRoute {
    return {
      path: "/stomp",
      protocol: "STOMP",
      subprotocols: ["v12.stomp", "v11.stomp", "v10.stomp"],
      needsSubprotocol: false,
      messageBytesMax: headBytesMax + this.#bodyBytesMax + messageBytesSpareMin,
      accept: ({ webSocket, caller }) => this.connections.serve(createByteStream(webSocket), caller),
      endAll: () => this.connections.endAll(),
    };
  }
}

function toConnections(options: StompOptions): Connections {
  const { connectionsMax, settings, logger, metrics, slices = createLoopSlices() } = options;
  const log = createConnectionLog(logger);
  return new Connections({
    protocol: "STOMP",
    connectionsMax,
    connectTimeoutMs: settings.connectTimeoutMs,
    broker: options.broker,
    logger,
    metrics,
    create: (stream, caller, onClosed) => new Connection(stream, { ...options, log, slices, caller, onClosed }),
  });
}
