import type { Config } from "./config/settings.ts";
import type { Broker } from "./engine/broker.ts";
import type { ConnectionMemory } from "./gateway/shared/connection/memory.ts";
import { createStandardProfile } from "./gateway/stomp/profile.ts";
import type { StompSettings } from "./gateway/stomp/settings.ts";
import { StompServer } from "./gateway/stomp/stomp-server.ts";
import type { Logger } from "./lib/logger.ts";
import type { Randomness } from "./ports/randomness.ts";
import type { MetricsRegistry } from "./telemetry/metrics.ts";
import { version } from "./version.ts";

interface StompDependencies {
  readonly broker: Broker;
  readonly logger: Logger;
  readonly randomness: Randomness;
  readonly metrics: MetricsRegistry;
  readonly memory: ConnectionMemory;
}

/** The STOMP listener that the settings describe. */
export function createStomp(config: Config, options: StompDependencies): StompServer {
  return new StompServer({
    ...options,
    metrics: options.metrics.stomp,
    settings: toStompSettings(config),
    profile: createStandardProfile({
      hasImplicitReceipts: config.stompImplicitReceipts === "on",
      heartBeatMs: config.stompHeartBeatMs,
    }),
    server: `Stele/${version}`,
    newId: () => options.randomness.uuid(),
    connectionsMax: config.stompConnectionsMax,
  });
}

function toStompSettings(config: Config): StompSettings {
  return {
    extensionPrefix: config.extensionPrefix,
    opensTopics: config.stompAutoOpen === "on",
    bodyBytesMax: config.stompBodyBytesMax,
    subscriptionsMax: config.stompSubscriptionsMax,
    subscriptionExpirySeconds: config.stompSubscriptionExpirySeconds,
    connectTimeoutMs: config.stompConnectTimeoutMs,
  };
}
