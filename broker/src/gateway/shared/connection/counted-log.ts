import type { LogFields, Logger } from "../../../lib/logger.ts";
import { countedLogIntervalMs } from "./limits.ts";

export interface CountedLogMessages {
  /** Of the line with the fields of one occurrence. */
  readonly first: string;
  /** Of the line that has the count of those since. */
  readonly further: string;
}

/** Warns of what clients may cause as often as they like: the first time at once, and of further ones by their count. */
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
