import type { ConnectionDependencies } from "./connections.ts";
import type { Config } from "../config/settings.ts";
import type { StompSettings } from "../gateway/stomp/settings.ts";
import { StompServer } from "../gateway/stomp/stomp-server.ts";
import { version } from "../version.ts";

/** The STOMP listener that the settings describe. */
export function createStomp(config: Config, options: ConnectionDependencies): StompServer {
  return new StompServer({
    ...options,
    metrics: options.metrics.stomp,
    settings: toStompSettings(config),
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
    heartBeatMs: config.stompHeartBeatMs,
    hasImplicitReceipts: config.stompImplicitReceipts === "on",
  };
}
