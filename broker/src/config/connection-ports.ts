import type { Config } from "./settings.ts";

/** Protocols whose clients hold a connection. Names of their settings begin so. */
export const connectionProtocols = ["mqtt", "stomp"] as const;
export type ConnectionProtocol = (typeof connectionProtocols)[number];

/** How each is called. */
export const protocolNames = { mqtt: "MQTT", stomp: "STOMP" } as const satisfies Record<ConnectionProtocol, string>;

/** The ports that are registered for them, or that their clients expect. */
const defaultPorts: Readonly<Record<ConnectionProtocol, number>> = { mqtt: 1883, stomp: 61_613 };

type PortSettings = Pick<Config, "mqttPort" | "mqttTlsPort" | "stompPort" | "stompTlsPort">;

/** A port to listen on. */
export interface ConnectionPort {
  readonly port: number;
  /** Whether the operator asked for it; else the broker does without where it is taken. */
  readonly isChosen: boolean;
}

/** Undefined where the protocol is off over TCP. */
export function portOf(config: PortSettings, protocol: ConnectionProtocol): ConnectionPort | undefined {
  const port = config[`${protocol}Port`];
  if (port === "off") return undefined;
  if (port !== undefined) return { port, isChosen: true };
  return { port: defaultPorts[protocol], isChosen: false };
}

/** Whether any client may speak the protocol. */
export function serves(config: PortSettings, protocol: ConnectionProtocol): boolean {
  return portOf(config, protocol) !== undefined || config[`${protocol}TlsPort`] !== "off";
}
