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
        "Port to listen on for STOMP 1.0, 1.1 and 1.2, at the address of `host`; 0 takes any free one, `off` none. Without this setting the broker takes 61613, and goes on without it, with a warning, where that is taken. WebSocket clients connect to `/stomp` of the HTTP port, unless this and `stompTlsPort` are `off`.",
      default: "off",
    }),
    "61613",
  ),
  stompTlsPort: portOrOff({
    section,
    description:
      "Port to listen on for STOMP over TLS, at the address of `host`; 0 takes any free one. Needs `stompTlsCertificateFile` and `stompTlsKeyFile`.",
    default: "off",
  }),
  stompTlsCertificateFile: certificateFile(section, "STOMP over TLS"),
  stompTlsKeyFile: keyFile(section),
  stompTlsClientCaFile: clientCaFile(section, "STOMP over TLS"),
  stompAutoOpen: choice(["on", "off"], {
    section,
    description: "Whether a SEND opens its topic where there is none; otherwise it is refused.",
    default: "on",
  }),
  stompConnectionsMax: integer({
    section,
    description: "STOMP connections at once; further ones are closed at once.",
    default: 10_000,
    min: 1,
    max: 1_000_000,
  }),
  stompConnectTimeoutMs: integer({
    section,
    description: "How long a connection may take for its CONNECT; then it gets an ERROR and is closed.",
    default: 10 * secondMs,
    unit: "milliseconds",
    min: 100,
    max: 600 * secondMs,
  }),
  stompHeartBeatMs: integer({
    section,
    description:
      "Interval of heart-beats that CONNECTED offers and asks for, in both directions; 0 for none. The longer of this one and the client's counts. A client that sends none is never ended for its silence.",
    default: 10 * secondMs,
    unit: "milliseconds",
    min: 0,
    max: 3_600 * secondMs,
  }),
  stompBodyBytesMax: integer({
    section,
    description: "Longest body of a SEND. A longer one is refused before it has come whole.",
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
      "Whether a SUBSCRIBE or UNSUBSCRIBE that asks for no receipt gets one all the same, with its `id` as `receipt-id`. Some clients wait for it.",
    default: "off",
  }),
} as const satisfies SettingsTable;
