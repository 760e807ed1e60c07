import { Allowance, type AllowanceSize } from "./allowance.ts";
import type { LogFields, Logger } from "./logger.ts";

export interface BoundedLogOptions {
  readonly logger: Pick<Logger, "info" | "warn">;
  readonly clock: { monotonic(): number };
  /** Lines that may come in a burst, and further lines that each second allows. */
  readonly lines: AllowanceSize;
}

/** Logs events that clients can cause in any number. Omits lines beyond the allowance; the next line has their number as `omitted`. */
export class BoundedLog {
  readonly #logger: BoundedLogOptions["logger"];
  readonly #lines: Allowance;
  #omitted = 0;

  constructor({ logger, clock, lines }: BoundedLogOptions) {
    this.#logger = logger;
    this.#lines = new Allowance(lines, clock);
  }

  info(message: string, fields: LogFields): void {
    this.#log("info", message, fields);
  }

  warn(message: string, fields: LogFields): void {
    this.#log("warn", message, fields);
  }

  #log(level: "info" | "warn", message: string, fields: LogFields): void {
    if (!this.#lines.take()) {
      this.#omitted += 1;
      return;
    }
    const omitted = this.#omitted === 0 ? {} : { omitted: this.#omitted };
    this.#omitted = 0;
    this.#logger[level](message, { ...fields, ...omitted });
  }
}
