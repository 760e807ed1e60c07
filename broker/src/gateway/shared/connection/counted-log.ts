import { BoundedLog } from "../../../lib/bounded-log.ts";
import type { LogFields, Logger } from "../../../lib/logger.ts";
import { connectionLinesMax, connectionLinesPerSecondMax, countedLogIntervalMs } from "./limits.ts";

/** The log of refused and ended connections of one protocol: a client can cause such lines at will. */
export function createConnectionLog(logger: Logger): BoundedLog {
  const lines = { atOnce: connectionLinesMax, perSecond: connectionLinesPerSecondMax };
  return new BoundedLog({ logger, clock: { monotonic: () => performance.now() }, lines });
}

export interface CountedLogMessages {
  /** Message of the line with the fields of one occurrence. */
  readonly first: string;
  /** Message of the line that counts the occurrences since then. */
  readonly further: string;
}

/** Warns of events that clients can cause at will: of one at once, of those in the second after it by their count. */
export class CountedLog {
  readonly #logger: Logger;
  readonly #messages: CountedLogMessages;
  #count = 0;
  #isQuiet = false;

  constructor(logger: Logger, messages: CountedLogMessages) {
    this.#logger = logger;
    this.#messages = messages;
  }

  add(fields: LogFields): void {
    this.#count += 1;
    if (this.#isQuiet) return;
    this.#logger.warn(this.#messages.first, { ...fields, count: this.#count });
    this.#count = 0;
    this.#isQuiet = true;
    setTimeout(() => this.#rest(), countedLogIntervalMs).unref();
  }

  #rest(): void {
    this.#isQuiet = false;
    if (this.#count > 0) this.#logger.warn(this.#messages.further, { count: this.#count });
    this.#count = 0;
  }
}
