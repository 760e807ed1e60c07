import type { EmbeddedChain } from "@stele/chain";
import { createMqtt } from "./compose-mqtt.ts";
import type { ConfiguredPlace, PlacedListener } from "./compose-listen.ts";
import { hostNamesOf } from "./config/derived.ts";
import type { Config } from "./config/settings.ts";
import type { Broker } from "./engine/broker.ts";
import { createHttpServer } from "./gateway/http-server.ts";
import type { Listener } from "./gateway/shared/connection/listener.ts";
import type { UpgradeRoute } from "./gateway/shared/connection/upgrade.ts";
import type { Logger } from "./lib/logger.ts";
import type { Randomness } from "./ports/randomness.ts";
import type { MetricsRegistry } from "./telemetry/metrics.ts";
import { version } from "./version.ts";

interface ListenerParts {
  readonly broker: Broker;
  readonly chain: EmbeddedChain | undefined;
  readonly metrics: MetricsRegistry;
  readonly logger: Logger;
  readonly randomness: Randomness;
  /** How long requests under way may take when the broker stops. */
  readonly closeDeadlineMs: number;
}

/** Every listener that the settings ask for, with its place; the first one serves HTTP. */
export function createListeners(config: Config, parts: ListenerParts): readonly PlacedListener[] {
  const place = mqttPlaceOf(config);
  if (place === undefined) return [{ listener: createHttp(config, parts, []), place: httpPlaceOf(config) }];
  const mqtt = createMqtt(config, parts);
  return [
    { listener: createHttp(config, parts, [mqtt.route]), place: httpPlaceOf(config) },
    { listener: mqtt, place },
  ];
}

/** Where the broker is to listen. */
export function placesOf(config: Config): readonly ConfiguredPlace[] {
  const mqtt = mqttPlaceOf(config);
  return mqtt === undefined ? [httpPlaceOf(config)] : [httpPlaceOf(config), mqtt];
}

function httpPlaceOf({ host, port }: Config): ConfiguredPlace {
  return { host, port, hostSetting: "host", portSetting: "port" };
}

/** Undefined where MQTT is off. */
function mqttPlaceOf({ host, mqttPort: port }: Config): ConfiguredPlace | undefined {
  return port === "off" ? undefined : { host, port, hostSetting: "host", portSetting: "mqttPort" };
}

function createHttp(config: Config, parts: ListenerParts, upgrades: readonly UpgradeRoute[]): Listener {
  const { broker, chain, metrics, logger, closeDeadlineMs } = parts;
  return createHttpServer({
    broker,
    metrics,
    logger,
    upgrades,
    chain: config.chainEndpoint === "on" ? chain?.reader : undefined,
    version,
    defaultGroup: config.defaultGroup,
    basePath: config.basePath,
    extensionPrefix: config.extensionPrefix,
    bodyBytesMax: config.requestBodyBytesMax,
    memoryInFlightBytesMax: config.memoryInFlightBytesMax,
    advertisedAddress: config.advertisedAddress,
    allowedHosts: hostNamesOf(config),
    allowedOrigins: config.allowedOrigins,
    closeDelayMs: config.shutdownDelayMs,
    closeDeadlineMs,
  });
}
