import type { Config } from "./settings.ts";

/** Protocols whose clients stay connected. The names of their settings begin with these words. */
export const connectionProtocols = ["mqtt", "stomp"] as const;
export type ConnectionProtocol = (typeof connectionProtocols)[number];

/** Names of the protocols for people. */
export const protocolNames = { mqtt: "MQTT", stomp: "STOMP" } as const satisfies Record<ConnectionProtocol, string>;

/** Default ports: those that are registered for the protocols, or that clients expect. */
const defaultPorts: Readonly<Record<ConnectionProtocol, number>> = { mqtt: 1883, stomp: 61_613 };

type PortSettings = Pick<Config, "mqttPort" | "mqttTlsPort" | "stompPort" | "stompTlsPort">;

/** A port to listen on. */
export interface ConnectionPort {
  readonly port: number;
  /** Whether the settings name the port. Otherwise the broker starts without it if another program uses it. */
  readonly isConfigured: boolean;
}

/** The port of the protocol over TCP without TLS; undefined if that is off. */
export function portOf(config: PortSettings, protocol: ConnectionProtocol): ConnectionPort | undefined {
  const port = config[`${protocol}Port`];
  if (port === "off") return undefined;
  if (port !== undefined) return { port, isConfigured: true };
  return { port: defaultPorts[protocol], isConfigured: false };
}

/** Whether the protocol is on, with or without TLS. */
export function serves(config: PortSettings, protocol: ConnectionProtocol): boolean {
  return portOf(config, protocol) !== undefined || config[`${protocol}TlsPort`] !== "off";
}
