import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import { pause } from "../../lib/pause.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import { Wakeup } from "../../lib/wakeup.ts";
import { Deadline } from "../time.ts";

export interface RecurrenceOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Longest wait between two runs, in milliseconds. */
  readonly everyMs: number;
  /** Shortest wait between two runs, in milliseconds. */
  readonly restMs: number;
  /** Log line for a failure. */
  readonly failed: string;
}

/** Runs a task repeatedly, one run at a time: soon after {@link ask}, and otherwise after `everyMs`. */
export class Recurrence {
  readonly #options: RecurrenceOptions;
  readonly #trouble: ReportedTrouble;
  readonly #asked = new Wakeup();
  #isAskedFor = false;

  constructor(options: RecurrenceOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(options.logger, options.failed);
  }

  /** Runs the task soon. If a run is in progress, runs the task once more after it: the run in progress may have missed the change. */
  ask(): void {
    this.#isAskedFor = true;
    this.#asked.wake();
  }

  /** Repeats the task until `signal` aborts; returns then, even if a run is in progress. */
  async run(task: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, restMs } = this.#options;
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
    const { clock, everyMs, restMs } = this.#options;
    using deadline = new Deadline(clock, everyMs - restMs, signal);
    await this.#asked.wait(deadline.signal);
  }
}
