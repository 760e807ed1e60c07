import type { Logger } from "../../lib/logger.ts";

/** Logs a trouble that lasts once, and not at each try. */
export class ReportedTrouble {
  readonly #logger: Logger;
  readonly #message: string;
  #reason: string | undefined;

  /** `message` is the line of the log: what was not done. */
  constructor(logger: Logger, message: string) {
    this.#logger = logger;
    this.#message = message;
  }

  /** Why it was not done the last time; undefined when it was. */
  get reason(): string | undefined {
    return this.#reason;
  }

  failed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    if (reason === this.#reason) this.#logger.debug(this.#message, { error });
    else this.#logger.warn(this.#message, { error });
    this.#reason = reason;
  }

  done(): void {
    this.#reason = undefined;
  }
}
