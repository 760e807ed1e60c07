import { BrokerError, errorCatalogue } from "@stele/wire";
import type { EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { checksumOfBytes } from "../../lib/bytes-checksum.ts";
import { perKey } from "../../lib/per-key.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CommittedBatch, Ledger } from "../../ports/ledger.ts";
import { Deadline, untilAborted } from "../time.ts";

/** How long the chain may take to give the events of one read, in milliseconds, with the wait for a turn. */
const readTimeoutMs = 30_000;
/** Reads of one group's chain for dropped events at once; the others wait. Each takes up to `readBytesMax` of events. */
const readsMax = 4;
/** Memory for batches that were read last, in bytes: thousands of clients may ask for the same old event. */
const recentBytesMax = 8 * 1024 * 1024;
/** Estimated memory of a batch beside its events, in bytes. */
const overheadBytes = 512;

export interface ChainCopiesOptions {
  readonly ledgers: readonly Ledger[];
  readonly clock: Clock;
}

/** Gives the events that the store has dropped: the chain has them. */
export class ChainCopies {
  readonly #options: ChainCopiesOptions;
  readonly #turnsOf = perKey<GroupId, Semaphore>(() => new Semaphore(readsMax));
  /** Least recently used first. */
  readonly #recent = new Map<string, EventBatch>();
  #recentBytes = 0;

  constructor(options: ChainCopiesOptions) {
    this.#options = options;
  }

  /** The same batches, with the events of those that were dropped. @throws BrokerError 200205, 200209. */
  async fill(groupId: GroupId, batches: readonly EventBatch[]): Promise<readonly EventBatch[]> {
    if (!batches.some(isDropped)) return batches;
    const read = await this.#inTurn(groupId, async (signal) => {
      // Held here: while the chain is read, others may push it out of the memory for recent batches.
      const recent = new Map(batches.map((batch) => [placeOf(batch), this.#findRecent(groupId, batch)]));
      const missing = batches.filter((batch) => isDropped(batch) && recent.get(placeOf(batch)) === undefined);
      const found = await this.#read(groupId, missing, signal);
      return batches.map((batch) => {
        if (!isDropped(batch)) return batch;
        const filled = found.get(placeOf(batch)) ?? recent.get(placeOf(batch));
        if (filled === undefined) throw notGiven(batch);
        this.#remember(groupId, filled);
        return filled;
      });
    });
    if (read === undefined) throw tooSlow(batches);
    return read;
  }

  /** Whether the chain gives the events of these batches as they are here. @throws BrokerError 200205, 200209 if it does not. */
  async compare(groupId: GroupId, batches: readonly EventBatch[], parent: AbortSignal): Promise<void> {
    const done = await this.#inTurn(groupId, (signal) => this.#read(groupId, batches, signal), parent);
    if (done === undefined) throw tooSlow(batches);
  }

  /** Undefined if the chain takes too long, or `parent` aborts. */
  async #inTurn<Result>(
    groupId: GroupId,
    read: (signal: AbortSignal) => Promise<Result>,
    parent?: AbortSignal,
  ): Promise<Result | undefined> {
    using deadline = new Deadline(this.#options.clock, readTimeoutMs, parent);
    const { signal } = deadline;
    const result = await this.#turnsOf(groupId).run(() => untilAborted(read(signal), signal), signal);
    return signal.aborted ? undefined : result;
  }

  async #read(
    groupId: GroupId,
    batches: readonly EventBatch[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, EventBatch>> {
    if (batches.length === 0) return new Map();
    const ledger = this.#options.ledgers.find((one) => one.groupId === groupId);
    const given = await askFor(batches, async () => (await ledger?.readCommitted(batches, signal)) ?? []);
    const byPlace = new Map(given.map((one) => [placeOf(one), one]));
    const found = new Map<string, EventBatch>();
    for (const { dropped, ...batch } of batches) {
      const one = byPlace.get(placeOf(batch));
      if (signal.aborted) break;
      if (one === undefined || !isSame(one, { ...batch, ...(dropped && { dropped }) })) throw notGiven(batch);
      found.set(placeOf(batch), { ...batch, events: one.events });
    }
    return found;
  }

  /** A reorganisation may have put another batch there. */
  #findRecent(groupId: GroupId, batch: EventBatch): EventBatch | undefined {
    const known = this.#recent.get(keyOf(groupId, batch));
    return known?.transactionHash === batch.transactionHash ? known : undefined;
  }

  #remember(groupId: GroupId, batch: EventBatch): void {
    const key = keyOf(groupId, batch);
    this.#forget(key);
    this.#recent.set(key, batch);
    this.#recentBytes += memoryOf(batch);
    for (const oldest of this.#recent.keys()) {
      if (this.#recentBytes <= recentBytesMax) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    const known = this.#recent.get(key);
    if (known === undefined) return;
    this.#recent.delete(key);
    this.#recentBytes -= memoryOf(known);
  }
}

function isDropped({ dropped }: EventBatch): boolean {
  return dropped !== undefined;
}

function placeOf({ blockNumber, logIndex }: Pick<EventBatch, "blockNumber" | "logIndex">): string {
  return `${blockNumber} ${logIndex}`;
}

function keyOf(groupId: GroupId, { firstPosition }: EventBatch): string {
  return `${firstPosition} ${groupId}`;
}

function memoryOf({ events }: EventBatch): number {
  return overheadBytes + events.byteLength;
}

/** Whether the chain's batch is the one that was indexed. Its events are checked against its root already. */
function isSame(given: CommittedBatch, { dropped, ...batch }: EventBatch): boolean {
  if (given.transactionHash !== batch.transactionHash || given.firstSequence !== batch.firstSequence) return false;
  if (given.count !== batch.count || given.publisher !== batch.publisher) return false;
  const { byteCount, checksum } = dropped ?? {
    byteCount: batch.events.byteLength,
    checksum: checksumOfBytes(batch.events),
  };
  return given.events.byteLength === byteCount && checksumOfBytes(given.events) === checksum;
}

/** @throws the ledger's error, with the reason why the chain was asked. */
async function askFor<Result>(batches: readonly EventBatch[], ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const reason = message.replace(`${errorCatalogue.chainUnreachable.message}: `, "");
    throw new BrokerError("chainUnreachable", { details: `${whyAsked(batches)}: ${reason}`, cause: error });
  }
}

function tooSlow(batches: readonly EventBatch[]): BrokerError {
  const details = `${whyAsked(batches)}: no answer within ${readTimeoutMs / 1000} s`;
  return new BrokerError("chainUnreachable", { details });
}

function whyAsked(batches: readonly EventBatch[]): string {
  return `only the chain has the events of block ${batches[0]?.blockNumber} (storeRetentionMs)`;
}

function notGiven({ topic, firstSequence, blockNumber }: EventBatch): BrokerError {
  const details =
    `sequence ${firstSequence} of topic ${JSON.stringify(topic)} in block ${blockNumber}; ` +
    "an endpoint that has deleted old logs cannot answer: add one that keeps them all";
  return new BrokerError("eventUnavailable", { details });
}
