import { isClustered } from "./derived.ts";
import type { Config } from "./settings.ts";

/** The port that is registered for MQTT. */
const defaultMqttPort = 1883;

/** A port to listen on. */
export interface MqttPort {
  readonly port: number;
  /** Whether the operator asked for it; else the broker does without where it is taken. */
  readonly isChosen: boolean;
}

/** Undefined where MQTT over TCP is off. */
export function mqttPortOf(config: Pick<Config, "mqttPort" | "databaseUrl">): MqttPort | undefined {
  const { mqttPort } = config;
  if (mqttPort === "off") return undefined;
  if (mqttPort !== undefined) return { port: mqttPort, isChosen: true };
  return isClustered(config) ? undefined : { port: defaultMqttPort, isChosen: false };
}

/** Whether any client may speak MQTT. */
export function servesMqtt(config: Pick<Config, "mqttPort" | "mqttTlsPort" | "databaseUrl">): boolean {
  return mqttPortOf(config) !== undefined || config.mqttTlsPort !== "off";
}
