import type { Config } from "./config/settings.ts";
import { parseTopicFilter } from "./domain/topic-filter.ts";
import type { Broker } from "./engine/broker.ts";
import type { MemoryBudget } from "./gateway/in-flight/memory-budget.ts";
import { MqttServer } from "./gateway/mqtt/mqtt-server.ts";
import { reason } from "./gateway/mqtt/reason-codes.ts";
import type { MqttSettings } from "./gateway/mqtt/settings.ts";
import { type CertificateFiles, readCertificate } from "./gateway/mqtt/tls/certificate.ts";
import type { Logger } from "./lib/logger.ts";
import type { Randomness } from "./ports/randomness.ts";
import type { MetricsRegistry } from "./telemetry/metrics.ts";

interface MqttParts {
  readonly broker: Broker;
  readonly logger: Logger;
  readonly randomness: Randomness;
  readonly metrics: MetricsRegistry;
  readonly budget: MemoryBudget;
}

/** The MQTT listener that the settings describe. */
export function createMqtt(config: Config, parts: MqttParts): MqttServer {
  return new MqttServer({
    ...parts,
    metrics: parts.metrics.mqtt,
    settings: toMqttSettings(config),
    newClientId: () => parts.randomness.uuid(),
    connectionsMax: config.mqttConnectionsMax,
  });
}

/** Where the certificate for MQTT over TLS is. */
export function certificateFilesOf(config: Config): CertificateFiles {
  return { certificateFile: config.mqttTlsCertificateFile, keyFile: config.mqttTlsKeyFile };
}

/** @throws Error that says what is wrong with the certificate, if the settings name one. */
export function checkCertificate(config: Config): void {
  if (config.mqttTlsPort !== "off") readCertificate(certificateFilesOf(config));
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
    hasPlace: config.mqttEventPlace === "on",
    filtersRefused: config.mqttFiltersRefused.map(parseTopicFilter),
    denialCode: config.mqttDenialCode === "unspecified" ? reason.unspecified : reason.notAuthorized,
  };
}
