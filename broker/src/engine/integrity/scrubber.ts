import type { GroupId } from "../../domain/group-id.ts";
import type { Logger } from "../../lib/logger.ts";
import { pause } from "../../lib/pause.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Metrics, ScrubPart } from "../../ports/metrics.ts";
import type { EngineLimits } from "../limits.ts";

/**
 * Longest wait before a scrub that must come soon, in milliseconds. After a start: a broker that restarts often must scrub too. After a scrub that ended early
 * or left damage: the database or the chain may only have been away. And when it becomes this node's turn to scrub.
 */
const soonWaitMsMax = 3_600_000;
/** Wait between two steps, in milliseconds, so that a scrub uses little processor and disk time. */
const restMs = 100;
/** Wait after a failed step, in milliseconds: the database or the chain may be away for minutes. */
const retryMs = 60_000;
/** Maximum number of failures of one step. After that, the part waits for the next scrub, which begins soon. */
const failuresMax = 60;

/** Progress of a scrub, in batches, blocks, places or nodes of the state. */
export interface ScrubProgress {
  readonly checked: number;
  readonly damaged: number;
  readonly repaired: number;
  /** What the operator can do about damage that remains. */
  readonly advice?: string | undefined;
}

/** A part of a group that a scrub reads step by step, to find damage before a call needs the data. */
export interface Scrubbable {
  /** Checks the next data and repairs what it can; counts and skips other damage. Returns whether there is more. @throws an error that may be temporary. */
  step(): Promise<boolean>;
  readonly part: ScrubPart;
  readonly progress: ScrubProgress;
}

/** Result of a scrub of one part of a group. */
export interface ScrubReport extends ScrubProgress {
  readonly groupId: GroupId;
  readonly part: Scrubbable["part"];
  /** Why the index may lack events that are on the chain; undefined if it lacks none. */
  readonly behind?: string | undefined;
}

export interface ScrubberOptions {
  readonly groupId: GroupId;
  /** Begins a scrub: returns the parts of the group in the order in which to read them. */
  readonly begin: () => readonly Scrubbable[];
  /** Another number each time it becomes this node's turn to scrub the group; undefined while it is not. */
  readonly epoch: () => number | undefined;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly limits: Pick<EngineLimits, "scrubPeriodMs">;
}

/** Scrubs a group: reads all its data slowly, again and again. */
export class Scrubber {
  readonly #options: ScrubberOptions;

  constructor(options: ScrubberOptions) {
    this.#options = options;
  }

  get #isDue(): boolean {
    return this.#options.epoch() !== undefined;
  }

  /** Scrubs periodically until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, limits, epoch } = this.#options;
    const { scrubPeriodMs } = limits;
    if (scrubPeriodMs === 0) return;
    const soonMs = Math.min(scrubPeriodMs, soonWaitMsMax);
    let scrubbedEpoch: number | undefined;
    for (let leftMs = soonMs; !signal.aborted; ) {
      const waitMs = Math.min(leftMs, soonMs);
      await pause(clock, waitMs, signal);
      leftMs -= waitMs;
      const current = epoch();
      if (current === undefined) {
        leftMs = soonMs;
      } else if (leftMs === 0 || current !== scrubbedEpoch) {
        // Once it is this node's turn, it scrubs soon: it does not know of damage that another node found.
        scrubbedEpoch = current;
        leftMs = (await this.#scrub(signal)) ? scrubPeriodMs : soonMs;
      }
    }
  }

  /** Scrubs the group once, without pauses. Reports each part as it ends. @throws an error of a read. */
  async runOnce(report: (ended: ScrubReport) => void): Promise<void> {
    const { groupId, begin } = this.#options;
    for (const one of begin()) {
      while (await one.step()) continue;
      report({ groupId, part: one.part, ...one.progress });
    }
  }

  /** Returns whether all parts were read, and nothing is damaged any more. Never rejects. */
  async #scrub(signal: AbortSignal): Promise<boolean> {
    let isSound = true;
    for (const one of this.#options.begin()) isSound = (await this.#goThrough(one, signal)) && isSound;
    return isSound;
  }

  /** Returns whether all was read, and nothing is damaged any more. */
  async #goThrough(one: Scrubbable, signal: AbortSignal): Promise<boolean> {
    const { clock, logger, metrics, groupId } = this.#options;
    const startedAt = clock.monotonic();
    const isRead = await this.#readAll(one, signal);
    if (!isRead || signal.aborted || !this.#isDue) return false;
    metrics.scrubEnded(groupId, { part: one.part, at: clock.now() });
    const durationMs = Math.round(clock.monotonic() - startedAt);
    const { progress } = one;
    logger.info("scrubbed", { part: one.part, ...progress, durationMs });
    return progress.damaged === progress.repaired;
  }

  /** Repeats a failed step: an outage of a minute must not leave the rest unread for a week. Returns whether all was read. Never rejects. */
  async #readAll(one: Scrubbable, signal: AbortSignal): Promise<boolean> {
    const { clock, logger } = this.#options;
    for (let failures = 0; !signal.aborted && this.#isDue; ) {
      try {
        if (!(await one.step())) return true;
        failures = 0;
        await pause(clock, restMs, signal);
      } catch (error) {
        failures += 1;
        if (signal.aborted) return false;
        if (failures === 1) logger.warn("scrubbing failed, trying again", { part: one.part, ...one.progress, error });
        if (failures === failuresMax) {
          logger.error("scrubbing ended early", { part: one.part, ...one.progress, error });
          return false;
        }
        await pause(clock, retryMs, signal);
      }
    }
    return false;
  }
}
