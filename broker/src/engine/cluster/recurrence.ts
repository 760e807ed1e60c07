import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import { pause } from "../../lib/pause.ts";
import { untilAborted } from "../time.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";

export interface RecurrenceParts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Longest wait between two times. */
  readonly everyMs: number;
  /** Shortest wait between two times, however often it is asked for. */
  readonly restMs: number;
  /** The line of the log when it fails. */
  readonly failed: string;
}

/** Does a task again and again, one at a time: soon when it is asked for, and after a while when it is not. */
export class Recurrence {
  readonly #parts: RecurrenceParts;
  readonly #trouble: ReportedTrouble;
  #isAskedFor = false;
  #rouse = (): void => {};

  constructor(parts: RecurrenceParts) {
    this.#parts = parts;
    this.#trouble = new ReportedTrouble(parts.logger, parts.failed);
  }

  /** What happened before this call is seen by a time that begins after it. */
  ask(): void {
    this.#isAskedFor = true;
    this.#rouse();
  }

  /** Goes on until `signal` aborts; a time that is under way then is left to itself. */
  async run(task: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, restMs } = this.#parts;
    while (!signal.aborted) {
      this.#isAskedFor = false;
      await this.#once(task, signal);
      await pause(clock, restMs, signal);
      if (!this.#isAskedFor) await this.#untilAskedFor(signal);
    }
  }

  async #once(task: () => Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await untilAborted(task(), signal);
      this.#trouble.done();
    } catch (error) {
      this.#trouble.failed(error);
    }
  }

  async #untilAskedFor(signal: AbortSignal): Promise<void> {
    const { clock, everyMs, restMs } = this.#parts;
    const waiting = new AbortController();
    const end = (): void => waiting.abort();
    this.#rouse = end;
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    await pause(clock, everyMs - restMs, waiting.signal);
    signal.removeEventListener("abort", end);
  }
}
