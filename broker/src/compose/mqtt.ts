import type { ConnectionDependencies } from "./connections.ts";
import type { Config } from "../config/settings.ts";
import { parseTopicFilter } from "../domain/topic-filter.ts";
import { MqttServer } from "../gateway/mqtt/mqtt-server.ts";
import { reason } from "../gateway/mqtt/reason-codes.ts";
import type { MqttSettings } from "../gateway/mqtt/settings.ts";

/** The MQTT listener that the settings describe. */
export function createMqtt(config: Config, options: ConnectionDependencies): MqttServer {
  return new MqttServer({
    ...options,
    metrics: options.metrics.mqtt,
    settings: toMqttSettings(config),
    newClientId: () => options.randomness.uuid(),
    connectionsMax: config.mqttConnectionsMax,
  });
}

function toMqttSettings(config: Config): MqttSettings {
  return {
    extensionPrefix: config.extensionPrefix,
    opensTopics: config.mqttAutoOpen === "on",
    receiveMax: config.mqttReceiveMax,
    topicAliasMax: config.mqttTopicAliasMax,
    packetBytesMax: config.mqttPacketBytesMax,
    keepAliveSecondsMax: config.mqttKeepAliveSecondsMax,
    sessionExpirySecondsMax: config.mqttSessionExpirySecondsMax,
    connectTimeoutMs: config.mqttConnectTimeoutMs,
    qos0: config.mqttQos0,
    payload: config.mqttPayload,
    hasEventPlace: config.mqttEventPlace === "on",
    filtersRefused: config.mqttFiltersRefused.map(parseTopicFilter),
    denialCode: config.mqttDenialCode === "unspecified" ? reason.unspecified : reason.notAuthorized,
  };
}
