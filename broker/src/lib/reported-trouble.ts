import { LazySet } from "./lazy-collections.ts";
import type { LogFields, Logger } from "./logger.ts";

/** Maximum number of logged reasons per trouble: some reasons differ on each attempt. */
const reasonsMax = 4;

/** Logs a lasting trouble once per reason instead of on each attempt. Repeats go to level debug. */
export class ReportedTrouble {
  readonly #logger: Logger;
  readonly #message: string;
  readonly #recoveryMessage: string | undefined;
  readonly #logged = new LazySet<string>();
  #reason: string | undefined;

  /** `message` is the log line: what failed. `recoveryMessage` is the line for the recovery; without it there is none. */
  constructor(logger: Logger, message: string, recoveryMessage?: string) {
    this.#logger = logger;
    this.#message = message;
    this.#recoveryMessage = recoveryMessage;
  }

  /** Reason of the latest failure; undefined after a success. */
  get reason(): string | undefined {
    return this.#reason;
  }

  /** Logs `fields` with the error. Only the error's message decides whether the reason is new. */
  failed(error: unknown, fields: LogFields = {}): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#reason = reason;
    if (this.#logged.has(reason) || this.#logged.size >= reasonsMax)
      this.#logger.debug(this.#message, { ...fields, error });
    else this.#logger.warn(this.#message, { ...fields, error });
    if (this.#logged.size < reasonsMax) this.#logged.add(reason);
  }

  done(): void {
    if (this.#reason === undefined) return;
    this.#reason = undefined;
    this.#logged.clear();
    if (this.#recoveryMessage !== undefined) this.#logger.info(this.#recoveryMessage);
  }
}
