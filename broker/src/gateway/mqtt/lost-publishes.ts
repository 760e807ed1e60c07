import type { BrokerError } from "@stele/wire";
import type { BoundedLog } from "../../lib/bounded-log.ts";
import type { Logger } from "../../lib/logger.ts";
import { createRepeatLog } from "../shared/connection/connection-log.ts";
import type { MqttMetrics } from "./metrics.ts";
import { loggedCharactersMax } from "./limits.ts";

/** Names by which an operator finds a client. */
export interface ClientNames {
  readonly clientId: string | undefined;
  /** IP address of the client; undefined when the connection ended first. */
  readonly address: string | undefined;
}

/** Counts refused publishes of QoS 0, which get no answer, and logs one a second, with the number before it. All connections use one instance. */
export class LostPublishes {
  readonly #log: BoundedLog;
  readonly #metrics: Pick<MqttMetrics, "publishLost">;

  constructor(logger: Logger, metrics: Pick<MqttMetrics, "publishLost">) {
    this.#log = createRepeatLog(logger);
    this.#metrics = metrics;
  }

  lost(topic: string, { code, message }: BrokerError, names: ClientNames): void {
    this.#metrics.publishLost();
    this.#log.warn("MQTT publish of QoS 0 refused", {
      topic: toLogged(topic),
      code,
      reason: toLogged(message),
      ...names,
    });
  }
}

/** Shortens for the log a name that a client chose, which may be 64 KiB long. */
export function toLogged(name: string): string {
  return name.slice(0, loggedCharactersMax);
}
