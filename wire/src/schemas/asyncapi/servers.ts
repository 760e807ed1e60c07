import type { JsonSchema } from "../json-schema.ts";
import { type ServerKind, toReference } from "./async-document.ts";

/** Listeners that can ask their clients for a certificate. */
export type CertificateAsker = "http" | "mqtt" | "stomp";

/** One way to reach the broker. */
export interface AsyncServer {
  readonly kind: Exclude<ServerKind, "receiver">;
  readonly transport: "tcp" | "tls" | "websocket";
  /** Name and port. */
  readonly host: string;
  /** Path below the root; empty for none. */
  readonly pathname: string;
  /** Whether the connection is encrypted; always true for `tls`. */
  readonly isSecure: boolean;
}

/** The settings that the servers depend on. */
export interface ServerSettings {
  /** Whether calls need a key or a token. */
  readonly hasKeys: boolean;
  /** Listeners at which clients must show a certificate. */
  readonly asksCertificates: readonly CertificateAsker[];
  /** Longest time that a session of MQTT outlasts its connection, in seconds. */
  readonly mqttSessionExpirySecondsMax: number;
}

const protocols = {
  http: ["http", "https"],
  mqtt: ["mqtt", "secure-mqtt"],
  stomp: ["stomp", "stomps"],
} as const;

const versions = { http: "1.1", mqtt: "3.1.1 and 5.0", stomp: "1.0, 1.1 and 1.2" } as const;
const titles = { tcp: "", tls: " over TLS", websocket: " over WebSocket" } as const;
const subprotocols = { http: "none", mqtt: "mqtt", stomp: "v12.stomp, v11.stomp, v10.stomp or none" } as const;
const names = { http: "HTTP", mqtt: "MQTT", stomp: "STOMP" } as const;

/** The server of callbacks. A client cannot use it, but in AsyncAPI a channel that names no server is on all of them. */
const receiver = {
  host: "{receiver}",
  protocol: "http",
  title: "A receiver of callbacks",
  description: "The broker is the client here. The url may be https.",
  variables: { receiver: { description: "Host and port of the url that subscribe was called with." } },
};

/** The servers of the document, by their names. */
export function toServers(servers: readonly AsyncServer[], settings: ServerSettings): JsonSchema {
  const named = servers.map((server) => [nameOf(server), toServer(server, settings)]);
  return Object.fromEntries([...named, ["receiver", receiver]]);
}

/** The names of the servers of a kind. */
export function namesOf(servers: readonly AsyncServer[], kind: ServerKind): readonly string[] {
  return kind === "receiver" ? [kind] : servers.filter((server) => server.kind === kind).map(nameOf);
}

function nameOf({ kind, transport }: AsyncServer): string {
  const suffixes = { tcp: "", tls: kind === "http" ? "" : "Tls", websocket: "WebSocket" };
  return `${kind}${suffixes[transport]}`;
}

function toServer(server: AsyncServer, settings: ServerSettings): JsonSchema {
  const { kind, transport, host, pathname, isSecure } = server;
  const isWebSocket = transport === "websocket";
  const [plain, secure] = isWebSocket ? ["ws", "wss"] : protocols[kind];
  const schemes = schemesOf(server, settings).map((name) => toReference(`components/securitySchemes/${name}`));
  return {
    host,
    ...(pathname !== "" && { pathname }),
    protocol: isSecure ? secure : plain,
    protocolVersion: versions[kind],
    title: `${names[kind]}${titles[transport]}`,
    ...(isWebSocket && { description: `Subprotocol ${subprotocols[kind]}.` }),
    ...(schemes.length > 0 && { security: schemes }),
    ...(kind === "mqtt" && { bindings: { mqtt: toMqttBinding(settings) } }),
  };
}

function toMqttBinding({ mqttSessionExpirySecondsMax: maximum }: ServerSettings): JsonSchema {
  return { sessionExpiryInterval: { type: "integer", minimum: 0, maximum }, bindingVersion: "0.2.0" };
}

/** The security schemes of a server: each of them alone is enough, as docs/access.md says. */
function schemesOf({ kind, transport, isSecure }: AsyncServer, settings: ServerSettings): readonly SchemeName[] {
  const listener = transport === "websocket" ? "http" : kind;
  const asks = isSecure && settings.asksCertificates.includes(listener);
  return [...(settings.hasKeys ? [keySchemes[kind]] : []), ...(asks ? (["certificate"] as const) : [])];
}

const keySchemes = { http: "bearer", mqtt: "mqttPassword", stomp: "stompPasscode" } as const;

const schemes = {
  bearer: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "a key of the broker, or a JWT",
    description: "`Authorization: Bearer KEY`; see docs/access.md.",
  },
  mqttPassword: {
    type: "userPassword",
    description: "The key or JWT is the password of CONNECT, with any user name; without a password, the user name.",
  },
  stompPasscode: {
    type: "userPassword",
    description: "The key or JWT is the `passcode` of CONNECT, with any `login`; without a passcode, the `login`.",
  },
  certificate: {
    type: "X509",
    description:
      "Every client must show a certificate that an authority of the broker signed. A client whose certificate the setting `access` names needs no key.",
  },
} as const;

type SchemeName = keyof typeof schemes;

/** The security schemes that these servers use, by their names. */
export function toSecuritySchemes(servers: readonly AsyncServer[], settings: ServerSettings): JsonSchema {
  const used = new Set(servers.flatMap((server) => schemesOf(server, settings)));
  return Object.fromEntries([...used].map((name) => [name, schemes[name]]));
}
