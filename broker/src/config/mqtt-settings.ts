import { isTopicFilter } from "../domain/topic-filter.ts";
import { choice, integer, list, optional, portOrOff, type SettingsTable } from "./setting.ts";
import { certificateFile, clientCaFile, keyFile } from "./tls-settings.ts";

const section = "MQTT";
const secondMs = 1000;
const dayS = 24 * 60 * 60;

/** Settings of the MQTT listener. */
export const mqttSettings = {
  mqttPort: optional(
    portOrOff({
      section,
      description:
        "Port to listen on for MQTT 3.1.1 and 5.0, at the address of `host`; 0 picks a free one, `off` turns it off. Without this setting the broker listens on 1883; if another program uses that port, the broker logs a warning and starts without it. WebSocket clients connect to `/mqtt` of the HTTP port, unless this and `mqttTlsPort` are `off`.",
      default: "off",
    }),
    "1883",
  ),
  mqttTlsPort: portOrOff({
    section,
    description:
      "Port to listen on for MQTT over TLS, at the address of `host`; 0 picks a free one. Needs `mqttTlsCertificateFile` and `mqttTlsKeyFile`.",
    default: "off",
  }),
  mqttTlsCertificateFile: certificateFile(section, "MQTT over TLS"),
  mqttTlsKeyFile: keyFile(section),
  mqttTlsClientCaFile: clientCaFile(section, "MQTT over TLS"),
  mqttAutoOpen: choice(["on", "off"], {
    section,
    description:
      "Whether a publish over MQTT opens its topic if the topic does not exist; if `off`, the broker refuses the publish.",
    default: "on",
  }),
  mqttConnectionsMax: integer({
    section,
    description: "Maximum number of MQTT connections; the broker closes further ones at once.",
    default: 10_000,
    min: 1,
    max: 1_000_000,
  }),
  mqttConnectTimeoutMs: integer({
    section,
    description: "How long a client may take to send its CONNECT; after that, the broker closes the connection.",
    default: 10 * secondMs,
    unit: "milliseconds",
    min: 100,
    max: 600 * secondMs,
  }),
  mqttKeepAliveSecondsMax: integer({
    section,
    description:
      "Longest keep-alive. A 5.0 client that asks for a longer one, or for none, gets this one as Server Keep Alive. MQTT 3.1.1 has no such answer, so its clients keep their own. 0 accepts any.",
    default: 0,
    unit: "seconds",
    min: 0,
    max: 65_535,
  }),
  mqttSessionExpirySecondsMax: integer({
    section,
    description:
      "Longest time that a session outlasts its connection. A 5.0 client that asks for more gets this time, and CONNACK says so. A 3.1.1 session that is not clean gets this time.",
    default: 7 * dayS,
    unit: "seconds",
    min: 0,
    max: 365 * dayS,
  }),
  mqttReceiveMax: integer({
    section,
    description:
      "Publishes with QoS 1 and 2 that one connection may have in flight (Receive Maximum). The broker disconnects a client that sends more, with 0x93. An MQTT 3.1.1 client cannot know this limit: the broker reads no more from it while this many are unanswered.",
    default: 1_000,
    unit: "publishes",
    min: 1,
    max: 65_535,
  }),
  mqttTopicAliasMax: integer({
    section,
    description: "Topic aliases that a client may use on one connection (Topic Alias Maximum); 0 for none.",
    default: 100,
    min: 0,
    max: 65_535,
  }),
  mqttPacketBytesMax: integer({
    section,
    description:
      "Longest packet (Maximum Packet Size). When the header announces a longer packet, the broker closes the connection without waiting for the rest; a connected 5.0 client first gets 0x95. A CONNECT may have 128 KiB at most.",
    default: 512 * 1024,
    unit: "bytes",
    min: 1024,
    max: 64 * 1024 * 1024,
  }),
  mqttEventPlace: choice(["on", "off"], {
    section,
    description:
      "Whether 5.0 subscribers get the identifier, sequence number and block of each event as user properties (`svc-eventId`, `svc-sequence`, `svc-block`).",
    default: "on",
  }),
  mqttQos0: choice(["commit", "live"], {
    section,
    description:
      "What happens to a publish with QoS 0. `commit`: it becomes an event on the chain, like any other publish. `live`: the MQTT subscribers that are connected to this node get it at once, if they keep up; the broker does not commit it, so no callback, `getEvent` or later connection has it. A publish with the retain flag is always committed.",
    default: "commit",
  }),
  mqttPayload: choice(["raw", "event"], {
    section,
    description:
      "What subscribers get as the payload. `raw`: the content of the event. `event`: the event as the REST interface returns it, as JSON with topic, content in Base64, extensions and eventId. With either value, the payload that a client publishes becomes the event's content.",
    default: "raw",
  }),
  mqttFiltersRefused: list({
    section,
    description:
      "Topic filters that no client may subscribe to; the broker also refuses filters that one of them covers. This is not access control: a wider filter, such as `#`, still gets the events.",
    default: [],
    rule: "a list of topic filters",
    checkEntry: isTopicFilter,
  }),
  mqttDenialCode: choice(["not-authorized", "unspecified"], {
    section,
    description:
      "Reason code that a 5.0 client gets for a subscription that is not allowed: `not-authorized` is 0x87, `unspecified` is 0x80. A 3.1.1 client always gets 0x80.",
    default: "not-authorized",
  }),
} as const satisfies SettingsTable;
