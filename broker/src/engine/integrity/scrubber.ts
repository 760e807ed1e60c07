import type { GroupId } from "../../domain/group-id.ts";
import { advance, endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import type { Logger } from "../../lib/logger.ts";
import { pause } from "../../lib/pause.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { Store } from "../../ports/store.ts";
import type { EngineLimits } from "../limits.ts";

/** Longest wait from a start to the first round, in milliseconds: a broker that is often restarted scrubs, too. */
const firstWaitMsMax = 3_600_000;
/** Wait between two steps, so that a round takes little of the machine. */
const restMs = 100;
/** Batches that one step reads. */
const batchesPerStepMax = 64;
/** Bytes of encoded events with which a step ends. */
const bytesPerStepMax = 1024 * 1024;

/** Something that is gone through step by step, to find what is damaged in it before anybody asks for it. */
export interface Scrubbable {
  /** Reads on from where the last step ended, and mends what it finds. Answers whether there is more. @throws what cannot be read or mended. */
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

export interface IndexScrubParts {
  readonly groupId: GroupId;
  /** One that mends what it reads. */
  readonly store: Store;
  readonly metrics: Metrics;
}

/** Reads every batch of a group's index in its order, and looks each of them up as getEvent does: by its topic. */
export class IndexScrub implements Scrubbable {
  readonly #parts: IndexScrubParts;
  #after: Position = positionZero;
  #batches = 0;

  constructor(parts: IndexScrubParts) {
    this.#parts = parts;
  }

  get progress(): Readonly<Record<string, unknown>> {
    return { part: "index", batches: this.#batches };
  }

  async step(): Promise<boolean> {
    const { store, groupId, metrics } = this.#parts;
    const head = await store.findHead(groupId);
    if (head === undefined) return false;
    const upTo = endOfBlock(head.blockNumber);
    const limits = { batchesMax: batchesPerStepMax, bytesMax: bytesPerStepMax };
    const batches = await store.readBatches(groupId, { after: this.#after, upTo, topic: undefined, ...limits });
    for (const { topic, firstSequence } of batches) await store.findBatch(groupId, { topic, sequence: firstSequence });
    this.#batches += batches.length;
    const last = batches.at(-1);
    metrics.scrubbed(groupId, { block: last?.blockNumber ?? head.blockNumber, batches: batches.length });
    if (last === undefined) return false;
    this.#after = advance(last.firstPosition, last.count - 1);
    return true;
  }
}
