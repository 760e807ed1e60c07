import type { EmbeddedChain } from "@stele/chain";
import { certificateFilesOf, createMqtt } from "./compose-mqtt.ts";
import type { ConfiguredPlace, ListenerAddress, PlacedListener } from "./compose-listen.ts";
import { hostNamesOf } from "./config/derived.ts";
import { mqttPortOf, servesMqtt } from "./config/mqtt-ports.ts";
import type { Config } from "./config/settings.ts";
import type { Broker } from "./engine/broker.ts";
import { createHttpServer } from "./gateway/http-server.ts";
import { MemoryBudget } from "./gateway/in-flight/memory-budget.ts";
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
  /** Those that listen, for the health page. */
  readonly listeners: () => readonly ListenerAddress[];
  /** How long requests in progress may take when the broker stops. */
  readonly closeDeadlineMs: number;
}

interface HttpParts extends ListenerParts {
  readonly budget: MemoryBudget;
}

/** Every listener that the settings ask for, with its place; the first one serves HTTP. @throws Error where a certificate is wrong. */
export function createListeners(config: Config, parts: ListenerParts): readonly PlacedListener[] {
  const budget = new MemoryBudget({ bytesMax: config.memoryInFlightBytesMax, metrics: parts.metrics });
  const mqtt = servesMqtt(config) ? createMqtt(config, { ...parts, budget }) : undefined;
  const http = {
    listener: createHttp(config, { ...parts, budget }, mqtt === undefined ? [] : [mqtt.route]),
    place: httpPlaceOf(config),
  };
  if (mqtt === undefined) return [http];
  const [tcp, tls] = [mqttPlaceOf(config), mqttTlsPlaceOf(config)];
  return [
    http,
    ...(tcp === undefined ? [] : [{ listener: mqtt, place: tcp }]),
    ...(tls === undefined ? [] : [{ listener: mqtt.createTlsListener(certificateFilesOf(config)), place: tls }]),
  ];
}

/** Where the broker is to listen. */
export function placesOf(config: Config): readonly ConfiguredPlace[] {
  const places = [httpPlaceOf(config), mqttPlaceOf(config), mqttTlsPlaceOf(config)];
  return places.filter((place) => place !== undefined);
}

function httpPlaceOf({ host, port }: Config): ConfiguredPlace {
  return { host, port, hostSetting: "host", portSetting: "port" };
}

/** Undefined where MQTT over TCP is off. */
function mqttPlaceOf(config: Config): ConfiguredPlace | undefined {
  const found = mqttPortOf(config);
  if (found === undefined) return undefined;
  const { port, isChosen } = found;
  return { host: config.host, port, hostSetting: "host", portSetting: "mqttPort", isOptional: !isChosen };
}

/** Undefined where MQTT over TLS is off. */
function mqttTlsPlaceOf({ host, mqttTlsPort: port }: Config): ConfiguredPlace | undefined {
  return port === "off" ? undefined : { host, port, hostSetting: "host", portSetting: "mqttTlsPort" };
}

function createHttp(config: Config, parts: HttpParts, upgrades: readonly UpgradeRoute[]): Listener {
  const { broker, chain, metrics, logger, closeDeadlineMs } = parts;
  return createHttpServer({
    broker,
    metrics,
    logger,
    upgrades,
    listeners: parts.listeners,
    budget: parts.budget,
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
