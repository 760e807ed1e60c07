import { BrokerError, errorCatalogue } from "@stele/wire";
import { type EventBatch, isDropped } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { checksumOfBytes } from "../../lib/bytes-checksum.ts";
import { perKey } from "../../lib/per-key.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { BlockState } from "../../ports/chain-check.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CommittedBatch, Ledger } from "../../ports/ledger.ts";
import { Deadline } from "../time.ts";

/** How long the chain may take to give old events to a subscription or a session, in milliseconds, including the wait for a turn. */
const feedTimeoutMs = 30_000;
/** How long the chain may take to give old events to a call, in milliseconds, including the wait for a turn. Shorter, since a caller waits. */
const callTimeoutMs = 10_000;
/** How long the chain may take to give events that are compared with the store's, in milliseconds. */
const compareTimeoutMs = 30_000;
/**
 * Maximum number of concurrent reads of one group's chain for subscriptions and sessions; the same number again for calls. Each takes up to
 * `readBytesMax` bytes of events.
 */
const readsMax = 2;
/** Memory for batches that were read last, in bytes: thousands of clients may ask for the same old event. */
const recentBytesMax = 8 * 1024 * 1024;
/** Estimated memory of a batch besides its events, in bytes. */
const overheadBytes = 512;

export interface ChainCopiesOptions {
  readonly ledgers: readonly Ledger[];
  readonly clock: Clock;
  /** Looks for damage in a block of a group's chain and repairs it if the index has the lost data. Undefined if the chain has no file here. */
  readonly inspectBlock?: (groupId: GroupId, blockNumber: number) => Promise<BlockState | undefined>;
}

/** Who asks for old events: a subscription or session, or a call. */
export type Reader = "feed" | "call";

interface Turns {
  readonly semaphore: Semaphore;
  /** How long one read may take, including the wait for its turn. */
  readonly timeoutMs: number;
}

/** The batches that the chain gave, by place, and the error if it did not give all. */
interface Given {
  readonly found: ReadonlyMap<string, EventBatch>;
  readonly failure: unknown;
}

/** Reads from the chain the events that the store has dropped. */
export class ChainCopies {
  readonly #options: ChainCopiesOptions;
  /** Feeds and calls take separate turns, so that neither delays the other. */
  readonly #turnsOf = perKey<GroupId, Readonly<Record<Reader, Turns>>>(() => ({
    feed: { semaphore: new Semaphore(readsMax), timeoutMs: feedTimeoutMs },
    call: { semaphore: new Semaphore(readsMax), timeoutMs: callTimeoutMs },
  }));
  /** Batches that the chain gave, least recently used first. */
  readonly #recent = new Map<string, EventBatch>();
  #recentBytes = 0;

  constructor(options: ChainCopiesOptions) {
    this.#options = options;
  }

  /**
   * Returns the batches with their dropped events filled in. If the chain does not give all, returns only the batches before the first gap, and the caller
   * asks again for the rest. @throws BrokerError 200205, 200208, 200209 if the chain does not give the first.
   */
  async readDropped(groupId: GroupId, batches: readonly EventBatch[], reader: Reader): Promise<readonly EventBatch[]> {
    if (!batches.some(isDropped)) return batches;
    // Hold no batches during the wait for a turn: many callers may wait.
    const known = allOf(this.#findAll(groupId, batches));
    if (known !== undefined) return this.#rememberAll(groupId, known, batches);
    const { semaphore, timeoutMs } = this.#turnsOf(groupId)[reader];
    using deadline = new Deadline(this.#options.clock, timeoutMs);
    const { signal } = deadline;
    const result = await semaphore.run(() => this.#readDropped(groupId, batches, signal), signal);
    if (result !== undefined && result.given.length > 0) return this.#rememberAll(groupId, result.given, batches);
    throw signal.aborted ? tooSlow(batches, timeoutMs) : result?.failure;
  }

  /**
   * Compares batches with the chain. Returns those before the first batch that differs or that the chain does not give. @throws BrokerError 200205, 200208,
   * 200209 if that would be none.
   */
  async compare(groupId: GroupId, batches: readonly EventBatch[], parent: AbortSignal): Promise<readonly EventBatch[]> {
    using deadline = new Deadline(this.#options.clock, compareTimeoutMs, parent);
    const { signal } = deadline;
    const { found, failure } = await this.#read(groupId, batches, signal);
    const given = firstOf(batches.map((batch) => (found.has(placeOf(batch)) ? batch : undefined)));
    if (given.length > 0) return given;
    throw signal.aborted ? tooSlow(batches, compareTimeoutMs) : failure;
  }

  async #readDropped(groupId: GroupId, batches: readonly EventBatch[], signal: AbortSignal) {
    // Hold the known batches here: others may push them out of the recent ones while the chain is read.
    const known = this.#findAll(groupId, batches);
    const missing = batches.filter((_, index) => known[index] === undefined);
    const { found, failure } = await this.#read(groupId, missing, signal);
    return { given: firstOf(batches.map((batch, index) => known[index] ?? found.get(placeOf(batch)))), failure };
  }

  /**
   * Reads from the chain. If the chain does not give the first batch, and its file is here, inspects the batch's block, and reads once more unless the block
   * stays damaged.
   */
  async #read(groupId: GroupId, batches: readonly EventBatch[], signal: AbortSignal): Promise<Given> {
    const [first] = batches;
    if (first === undefined) return { found: new Map(), failure: undefined };
    const given = await this.#ask(groupId, batches, signal);
    if (signal.aborted || given.found.has(placeOf(first))) return given;
    const state = await untilAborted(this.#inspect(groupId, first), signal);
    if (state === undefined) return given;
    return state === "damaged" ? { ...given, failure: damaged(first) } : this.#ask(groupId, batches, signal);
  }

  /** Looks for damage in the block of a batch. Also undefined if the inspection fails. */
  async #inspect(groupId: GroupId, { blockNumber }: EventBatch): Promise<BlockState | undefined> {
    return this.#options.inspectBlock?.(groupId, blockNumber).catch(() => undefined);
  }

  async #ask(groupId: GroupId, batches: readonly EventBatch[], signal: AbortSignal): Promise<Given> {
    const ledger = this.#options.ledgers.find((one) => one.groupId === groupId);
    const found = new Map<string, EventBatch>();
    try {
      const given = (await ledger?.readCommitted(batches, signal)) ?? [];
      const byPlace = new Map(given.map((one) => [placeOf(one), one]));
      for (const { dropped, ...batch } of batches) {
        const one = byPlace.get(placeOf(batch));
        if (one === undefined || !isSame(one, { ...batch, ...(dropped && { dropped }) })) continue;
        found.set(placeOf(batch), { ...batch, events: one.events });
      }
      const missing = batches.find((batch) => !found.has(placeOf(batch)));
      return { found, failure: missing && notGiven(missing) };
    } catch (error) {
      return { found, failure: unread(batches, error) };
    }
  }

  /** Returns each batch that has its events, or else a recent copy of it; undefined if the chain must give it. */
  #findAll(groupId: GroupId, batches: readonly EventBatch[]): readonly (EventBatch | undefined)[] {
    return batches.map((batch) => (isDropped(batch) ? this.#findRecent(groupId, batch) : batch));
  }

  /** Compares the hash too: a reorg may have put another batch at the position. */
  #findRecent(groupId: GroupId, batch: EventBatch): EventBatch | undefined {
    const known = this.#recent.get(keyOf(groupId, batch));
    return known?.transactionHash === batch.transactionHash ? known : undefined;
  }

  #rememberAll(groupId: GroupId, filled: readonly EventBatch[], batches: readonly EventBatch[]): readonly EventBatch[] {
    for (const [index, batch] of filled.entries()) if (batch !== batches[index]) this.#remember(groupId, batch);
    return filled;
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

function placeOf({ blockNumber, logIndex }: Pick<EventBatch, "blockNumber" | "logIndex">): string {
  return `${blockNumber} ${logIndex}`;
}

function keyOf(groupId: GroupId, { firstPosition }: EventBatch): string {
  return `${firstPosition} ${groupId}`;
}

function memoryOf({ events }: EventBatch): number {
  return overheadBytes + events.byteLength;
}

/** Whether the chain's batch is the one that was indexed. The ledger has checked the given events against their root. */
function isSame(given: CommittedBatch, { dropped, ...batch }: EventBatch): boolean {
  if (given.transactionHash !== batch.transactionHash || given.firstSequence !== batch.firstSequence) return false;
  if (given.count !== batch.count || given.publisher !== batch.publisher) return false;
  const { byteCount, checksum } = dropped ?? {
    byteCount: batch.events.byteLength,
    checksum: checksumOfBytes(batch.events),
  };
  return given.events.byteLength === byteCount && checksumOfBytes(given.events) === checksum;
}

/** All batches; undefined if one is missing. */
function allOf(batches: readonly (EventBatch | undefined)[]): readonly EventBatch[] | undefined {
  const found = firstOf(batches);
  return found.length === batches.length ? found : undefined;
}

/** The batches before the first that is missing. */
function firstOf(batches: readonly (EventBatch | undefined)[]): readonly EventBatch[] {
  const missing = batches.indexOf(undefined);
  return batches.slice(0, missing < 0 ? batches.length : missing).filter((one) => one !== undefined);
}

/** The ledger's error, with the reason why the chain was asked. */
function unread(batches: readonly EventBatch[], error: unknown): BrokerError {
  const message = error instanceof Error ? error.message : String(error);
  const reason = message.replace(`${errorCatalogue.chainUnreachable.message}: `, "");
  return new BrokerError("chainUnreachable", { details: `${whyAsked(batches)}: ${reason}`, cause: error });
}

function damaged({ blockNumber }: EventBatch): BrokerError {
  const details = `block ${blockNumber}, or the next one, is damaged in the chain's file; health says what to restore`;
  return new BrokerError("indexDamaged", { details });
}

function tooSlow(batches: readonly EventBatch[], timeoutMs: number): BrokerError {
  const details = `${whyAsked(batches)}: no answer within ${timeoutMs / 1000} s`;
  return new BrokerError("chainUnreachable", { details });
}

function whyAsked(batches: readonly EventBatch[]): string {
  const [first] = batches;
  return first?.dropped === undefined
    ? `the chain must give the events of block ${first?.blockNumber} before the store drops them (storeRetentionMs)`
    : `only the chain has the events of block ${first.blockNumber} (storeRetentionMs)`;
}

function notGiven({ topic, firstSequence, blockNumber }: EventBatch): BrokerError {
  const details =
    `sequence ${firstSequence} of topic ${JSON.stringify(topic)} in block ${blockNumber}; ` +
    "an endpoint that has deleted old logs cannot answer: add one that keeps them all";
  return new BrokerError("eventUnavailable", { details });
}
