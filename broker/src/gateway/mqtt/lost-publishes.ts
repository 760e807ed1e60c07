import type { BrokerError } from "@stele/wire";
import type { Logger } from "../../lib/logger.ts";
import type { MqttMetrics } from "./metrics.ts";
import { loggedTopicCharactersMax, lostLogIntervalMs } from "./limits.ts";

/** Logs refused publishes of QoS 0, which nobody is told of, for all connections of a listener: the first at once, further ones by their count. */
export class LostPublishes {
  readonly #logger: Logger;
  readonly #metrics: Pick<MqttMetrics, "publishLost">;
  #count = 0;
  #isQuiet = false;

  constructor(logger: Logger, metrics: Pick<MqttMetrics, "publishLost">) {
    this.#logger = logger;
    this.#metrics = metrics;
  }

  lost(topic: string, { code }: BrokerError): void {
    this.#metrics.publishLost();
    this.#count += 1;
    if (this.#isQuiet) return;
    this.#logger.warn("MQTT publishes of QoS 0 refused", { topic: toLogged(topic), code, count: this.#count });
    this.#count = 0;
    this.#isQuiet = true;
    setTimeout(() => this.#rest(), lostLogIntervalMs).unref();
  }

  #rest(): void {
    this.#isQuiet = false;
    if (this.#count > 0) this.#logger.warn("further MQTT publishes of QoS 0 refused", { count: this.#count });
    this.#count = 0;
  }
}

/** A topic of a client, which may be 64 KiB long, as it goes into the log. */
export function toLogged(topic: string): string {
  return topic.slice(0, loggedTopicCharactersMax);
}
