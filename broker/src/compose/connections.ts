import type { Broker } from "../engine/broker.ts";
import type { ConnectionMemory } from "../gateway/shared/connection/memory.ts";
import type { Logger } from "../lib/logger.ts";
import type { Randomness } from "../ports/randomness.ts";
import type { MetricsRegistry } from "../telemetry/metrics.ts";

/** What an MQTT or STOMP server needs besides the settings. */
export interface ConnectionDependencies {
  readonly broker: Broker;
  readonly logger: Logger;
  readonly randomness: Randomness;
  readonly metrics: MetricsRegistry;
  readonly memory: ConnectionMemory;
}
