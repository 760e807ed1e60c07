import type { Logger } from "./logger.ts";

/** Maximum number of logged reasons per trouble: some reasons differ on each attempt. */
const reasonsMax = 4;

/** Logs a lasting trouble once per reason instead of on each attempt. Repeats go to level debug. */
export class ReportedTrouble {
  readonly #logger: Logger;
  readonly #message: string;
  readonly #overMessage: string | undefined;
  readonly #told = new Set<string>();
  #reason: string | undefined;

  /** `message` is the log line: what failed. `overMessage` is the line for the recovery; without it there is none. */
  constructor(logger: Logger, message: string, overMessage?: string) {
    this.#logger = logger;
    this.#message = message;
    this.#overMessage = overMessage;
  }

  /** Reason of the latest failure; undefined after a success. */
  get reason(): string | undefined {
    return this.#reason;
  }

  failed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#reason = reason;
    if (this.#told.has(reason) || this.#told.size >= reasonsMax) this.#logger.debug(this.#message, { error });
    else this.#logger.warn(this.#message, { error });
    if (this.#told.size < reasonsMax) this.#told.add(reason);
  }

  done(): void {
    if (this.#reason === undefined) return;
    this.#reason = undefined;
    this.#told.clear();
    if (this.#overMessage !== undefined) this.#logger.info(this.#overMessage);
  }
}
