import type { BrokerError } from "@stele/wire";
import type { Logger } from "../../lib/logger.ts";
import { CountedLog } from "../shared/connection/counted-log.ts";
import type { MqttMetrics } from "./metrics.ts";
import { loggedCharactersMax } from "./limits.ts";

/** Names by which an operator finds a client. */
export interface ClientNames {
  readonly clientId: string | undefined;
  /** IP address of the client; undefined when the connection ended first. */
  readonly address: string | undefined;
}

/** Counts and logs refused publishes of QoS 0, which get no answer. All connections share it: logs one at once, and those of the next second as a count. */
export class LostPublishes {
  readonly #log: CountedLog;
  readonly #metrics: Pick<MqttMetrics, "publishLost">;

  constructor(logger: Logger, metrics: Pick<MqttMetrics, "publishLost">) {
    this.#log = new CountedLog(logger, {
      first: "MQTT publishes of QoS 0 refused",
      further: "further MQTT publishes of QoS 0 refused",
    });
    this.#metrics = metrics;
  }

  lost(topic: string, { code, message }: BrokerError, names: ClientNames): void {
    this.#metrics.publishLost();
    this.#log.add({ topic: toLogged(topic), code, reason: toLogged(message), ...names });
  }
}

/** Shortens for the log a name that a client chose, which may be 64 KiB long. */
export function toLogged(name: string): string {
  return name.slice(0, loggedCharactersMax);
}
