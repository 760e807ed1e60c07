import type { GroupId } from "../../domain/group-id.ts";
import type { Logger } from "../../lib/logger.ts";
import { pause } from "../../lib/pause.ts";
import type { Clock } from "../../ports/clock.ts";
import type { EngineLimits } from "../limits.ts";

/** Longest wait from a start to the first round, in milliseconds: a broker that is often restarted scrubs, too. */
const firstWaitMsMax = 3_600_000;
/** Wait between two steps, so that a round takes little of the machine. */
const restMs = 100;
/** Something that is gone through step by step, to find what is damaged in it before anybody asks for it. */
export interface Scrubbable {
  /** Reads on from where the last step ended, and mends what it finds. What cannot be mended is counted and passed over. Answers whether there is more. @throws what cannot be read for now. */
  step(): Promise<boolean>;
  /** For the log. */
  readonly progress: Readonly<Record<string, unknown>>;
}

export interface ScrubberParts {
  readonly groupId: GroupId;
  /** Begins a round. */
  readonly begin: () => readonly Scrubbable[];
  /** Whether it is this node that scrubs the group. */
  readonly isDue: () => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: Pick<EngineLimits, "scrubPeriodMs">;
}

/** Goes through what a group has, again and again, slowly. */
export class Scrubber {
  readonly #parts: ScrubberParts;

  constructor(parts: ScrubberParts) {
    this.#parts = parts;
  }

  /** Until `signal` aborts. It never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, limits, isDue } = this.#parts;
    const { scrubPeriodMs } = limits;
    if (scrubPeriodMs === 0) return;
    await pause(clock, Math.min(scrubPeriodMs, firstWaitMsMax), signal);
    while (!signal.aborted) {
      if (isDue()) for (const one of this.#parts.begin()) await this.#goThrough(one, signal);
      await pause(clock, scrubPeriodMs, signal);
    }
  }

  async #goThrough(one: Scrubbable, signal: AbortSignal): Promise<void> {
    const { clock, logger, isDue } = this.#parts;
    const startedAt = clock.monotonic();
    try {
      while (!signal.aborted && isDue() && (await one.step())) await pause(clock, restMs, signal);
      if (signal.aborted || !isDue()) return;
      logger.info("scrubbed", { ...one.progress, durationMs: Math.round(clock.monotonic() - startedAt) });
    } catch (error) {
      logger.error("scrubbing ended early", { ...one.progress, error });
    }
  }
}
