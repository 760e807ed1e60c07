import { type EventBatch, isDropped, lastPositionOf } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { beforeBlock, endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import { findFirstTrue } from "../../lib/first-true.ts";
import type { Logger } from "../../lib/logger.ts";
import { pause } from "../../lib/pause.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ledger } from "../../ports/ledger.ts";
import type { Metrics } from "../../ports/metrics.ts";
import { reorganisationBlocksMax, type Store } from "../../ports/store.ts";
import type { BlockTimes } from "../block-times.ts";
import type { ChainCopies } from "./chain-copies.ts";

/** Maximum number of batches of one step. One transaction drops them, and the indexing of new blocks waits for it. */
const batchesPerStepMax = 64;
/** Bytes of events after which a step ends. */
const bytesPerStepMax = 1024 * 1024;
/** Shortest rest between two steps, in milliseconds. */
const restMsMin = 10;
/** A rest takes this many times as long as the step before it. */
const restFactor = 4;
/** Longest wait between two rounds, in milliseconds. */
const roundWaitMsMax = 3_600_000;
/** Shortest wait between two rounds, in milliseconds: each round searches the chain for the block at a given time. */
const roundWaitMsMin = 1_000;
/** The wait between two rounds is the retention time divided by this number, within the two bounds above. */
const roundsPerRetention = 24;

export interface RetentionOptions {
  readonly groupId: GroupId;
  /** How long copies are kept, in milliseconds; undefined or 0 for ever. */
  readonly retentionMs: number | undefined;
  readonly ledger: Pick<Ledger, "isFinal">;
  /** A store that repairs damage, but does not read dropped events from the chain. */
  readonly store: Pick<Store, "findHead" | "readBatches" | "dropEvents">;
  readonly copies: Pick<ChainCopies, "compare">;
  readonly times: Pick<BlockTimes, "findBlockAt" | "get">;
  /** Whether this node must drop the group's old events. */
  readonly isDue: () => boolean;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "eventsDropped">;
  readonly logger: Logger;
}

/**
 * Drops the store's copies of events that are older than the retention time, oldest first. It drops an event only if the chain has returned the same bytes
 * again, and no reorg can remove the event any more. It stores no progress: the dropped batches show where it stopped.
 */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #trouble: ReportedTrouble;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(
      options.logger,
      "old events not dropped, trying again",
      "dropping old events works again",
    );
  }

  /** A warning for the operator; undefined while all goes well. */
  get warning(): string | undefined {
    const { reason } = this.#trouble;
    return reason === undefined ? undefined : `old events stay in the store in spite of storeRetentionMs: ${reason}`;
  }

  /** Runs until `signal` aborts. It never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { retentionMs = 0, clock, isDue } = this.#options;
    if (retentionMs === 0) return;
    const waitMs = Math.min(roundWaitMsMax, Math.max(roundWaitMsMin, Math.ceil(retentionMs / roundsPerRetention)));
    while (!signal.aborted) {
      if (isDue()) await this.#tryRound(retentionMs, signal);
      await pause(clock, waitMs, signal);
    }
  }

  async #tryRound(retentionMs: number, signal: AbortSignal): Promise<void> {
    try {
      await this.#round(retentionMs, signal);
      this.#trouble.done();
    } catch (error) {
      if (!signal.aborted) this.#trouble.failed(error);
    }
  }

  async #round(retentionMs: number, signal: AbortSignal): Promise<void> {
    const { store, groupId, ledger, times, clock, isDue } = this.#options;
    const { blockNumber = -1 } = (await store.findHead(groupId)) ?? {};
    const last = blockNumber - (ledger.isFinal ? 0 : reorganisationBlocksMax);
    if (last < 0) return;
    // A clock that runs ahead must not drop every copy: events must be old by the clock and by the newest block's time.
    const now = Math.min(clock.now(), await times.get(blockNumber, signal));
    const end = await times.findBlockAt(now - retentionMs, last, signal);
    if (end === 0) return;
    const upTo = endOfBlock(end - 1);
    for (let after = await this.#findKept(end); !signal.aborted && isDue(); ) {
      const startedAt = clock.monotonic();
      const next = await this.#step({ after, upTo }, signal);
      if (next === undefined) return;
      after = next;
      const restMs = Math.max(restMsMin, restFactor * (clock.monotonic() - startedAt));
      await pause(clock, restMs, signal);
    }
  }

  /** A place before the first batch that still has its events. A search finds it in few reads, since batches are dropped in order. */
  async #findKept(end: number): Promise<Position> {
    const upTo = endOfBlock(end - 1);
    const depth = await findFirstTrue(end, async (place) => {
      const [batch] = await this.#read({ after: beforeBlock(end - 1 - place), upTo }, 1);
      return batch !== undefined && isDropped(batch);
    });
    return depth === end ? positionZero : beforeBlock(end - 1 - depth);
  }

  /** Returns where the next step begins; undefined at the end. */
  async #step(
    { after, upTo }: { readonly after: Position; readonly upTo: Position },
    signal: AbortSignal,
  ): Promise<Position | undefined> {
    const { store, groupId, copies, metrics } = this.#options;
    const batches = await this.#read({ after, upTo }, batchesPerStepMax);
    const last = batches.at(-1);
    if (last === undefined) return undefined;
    const kept = batches.filter((batch) => !isDropped(batch) && batch.events.length > 0);
    const given = kept.length === 0 ? [] : await copies.compare(groupId, kept, signal);
    const gone = given.length === 0 ? [] : await store.dropEvents(groupId, given);
    const done = given.length === kept.length ? last : (given.at(-1) ?? last);
    const bytes = gone.reduce((sum, { events }) => sum + events.length, 0);
    metrics.eventsDropped(groupId, { batches: gone.length, bytes, block: done.blockNumber });
    return lastPositionOf(done);
  }

  #read(
    range: { readonly after: Position; readonly upTo: Position },
    batchesMax: number,
  ): Promise<readonly EventBatch[]> {
    const { store, groupId } = this.#options;
    return store.readBatches(groupId, { ...range, topic: undefined, batchesMax, bytesMax: bytesPerStepMax });
  }
}
