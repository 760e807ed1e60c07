import { choice, integer, optional, portOrOff, type SettingsTable } from "./setting.ts";
import { certificateFile, clientCaFile, keyFile } from "./tls-settings.ts";

const section = "STOMP";
const secondMs = 1000;
const dayS = 24 * 60 * 60;

/** Settings of the STOMP listener. */
export const stompSettings = {
  stompPort: optional(
    portOrOff({
      section,
      description:
        "Port to listen on for STOMP 1.0, 1.1 and 1.2, at the address of `host`; 0 picks a free one, `off` turns it off. Without this setting the broker listens on 61613; if another program uses that port, the broker logs a warning and starts without it. WebSocket clients connect to `/stomp` of the HTTP port, unless this and `stompTlsPort` are `off`.",
      default: "off",
    }),
    "61613",
  ),
  stompTlsPort: portOrOff({
    section,
    description:
      "Port to listen on for STOMP over TLS, at the address of `host`; 0 picks a free one. Needs `stompTlsCertificateFile` and `stompTlsKeyFile`.",
    default: "off",
  }),
  stompTlsCertificateFile: certificateFile(section, "STOMP over TLS"),
  stompTlsKeyFile: keyFile(section),
  stompTlsClientCaFile: clientCaFile(section, "STOMP over TLS"),
  stompAutoOpen: choice(["on", "off"], {
    section,
    description: "Whether a SEND opens its topic if the topic does not exist; if `off`, the broker refuses the SEND.",
    default: "on",
  }),
  stompConnectionsMax: integer({
    section,
    description: "Maximum number of STOMP connections; the broker closes further ones at once.",
    default: 10_000,
    min: 1,
    max: 1_000_000,
  }),
  stompConnectTimeoutMs: integer({
    section,
    description:
      "How long a client may take to send its CONNECT; after that, the broker sends an ERROR and closes the connection.",
    default: 10 * secondMs,
    unit: "milliseconds",
    min: 100,
    max: 600 * secondMs,
  }),
  stompHeartBeatMs: integer({
    section,
    description:
      "Interval of heart-beats that CONNECTED offers and asks for; 0 for none. In each direction, the longer of this interval and the client's counts. The broker never closes a connection for its silence if the client offers no heart-beats.",
    default: 10 * secondMs,
    unit: "milliseconds",
    min: 0,
    max: 3_600 * secondMs,
  }),
  stompBodyBytesMax: integer({
    section,
    description: "Longest body of a SEND. The broker refuses a longer one without reading it to its end.",
    default: 512 * 1024,
    unit: "bytes",
    min: 1024,
    max: 64 * 1024 * 1024,
  }),
  stompSubscriptionsMax: integer({
    section,
    description: "Subscriptions that one connection may have.",
    default: 100,
    min: 1,
    max: 10_000,
  }),
  stompSubscriptionExpirySeconds: integer({
    section,
    description: "How long a durable subscription outlasts its connection.",
    default: 7 * dayS,
    unit: "seconds",
    min: 1,
    max: 365 * dayS,
  }),
  stompImplicitReceipts: choice(["on", "off"], {
    section,
    description:
      "Whether a SUBSCRIBE or UNSUBSCRIBE that asks for no receipt still gets one, with its `id` as `receipt-id`. Some clients wait for it.",
    default: "off",
  }),
} as const satisfies SettingsTable;
