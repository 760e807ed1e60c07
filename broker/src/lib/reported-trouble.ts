import type { Logger } from "./logger.ts";

/** Reasons that one trouble is told with, at most: those of some kinds differ each time. */
const reasonsMax = 4;

/** Logs a trouble that lasts once for each reason, and not at each try; what it was told of goes on at level debug. */
export class ReportedTrouble {
  readonly #logger: Logger;
  readonly #message: string;
  readonly #overMessage: string | undefined;
  readonly #told = new Set<string>();
  #reason: string | undefined;

  /** `message` is the line of the log: what was not done. `overMessage` is the one for its end; without it none is written. */
  constructor(logger: Logger, message: string, overMessage?: string) {
    this.#logger = logger;
    this.#message = message;
    this.#overMessage = overMessage;
  }

  /** Why it was not done the last time; undefined when it was. */
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
