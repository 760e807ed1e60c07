import type { PlacedListener } from "./compose-listen.ts";
import type { Config } from "./config/settings.ts";
import type { Broker } from "./engine/broker.ts";
import { MqttServer } from "./gateway/mqtt/mqtt-server.ts";
import type { Logger } from "./lib/logger.ts";
import type { Randomness } from "./ports/randomness.ts";

/** What takes MQTT, and where it listens. */
export interface PlacedMqtt extends PlacedListener {
  readonly listener: MqttServer;
}

interface MqttParts {
  readonly broker: Broker;
  readonly randomness: Randomness;
  readonly logger: Logger;
}

/** Undefined where MQTT is off. */
export function createMqtt(config: Config, { broker, randomness, logger }: MqttParts): PlacedMqtt | undefined {
  const { host, mqttPort: port } = config;
  if (port === "off") return undefined;
  const listener = new MqttServer({
    broker,
    logger,
    extensionPrefix: config.extensionPrefix,
    opensTopics: config.mqttAutoOpen === "on",
    newClientId: () => randomness.uuid(),
    connectionsMax: config.mqttConnectionsMax,
  });
  return { listener, place: { host, port, hostSetting: "host", portSetting: "mqttPort" } };
}
