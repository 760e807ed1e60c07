import { BrokerError, encodedBytes, isBrokerError } from "@stele/wire";
import type { EventPayload } from "../../domain/event.ts";
import type { Address } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { Clock } from "../../ports/clock.ts";
import type { BatchOutcome, Ledger, OutgoingBatch } from "../../ports/ledger.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { IndexProgress } from "../follow/index-progress.ts";
import type { EngineLimits } from "../limits.ts";
import { Deadline } from "../time.ts";
import { Pacing } from "./pacing.ts";

/** Where an event was committed. */
export interface Committed {
  readonly sequence: number;
  readonly blockNumber: number;
}

/** An event that waits for a transaction. */
interface Waiting {
  readonly topic: TopicName;
  readonly address: Address;
  readonly payload: EventPayload;
  readonly bytes: number;
  readonly since: number;
  readonly deferred: Deferred<Committed>;
}

export interface GathererParts {
  readonly ledger: Ledger;
  readonly progress: IndexProgress;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly limits: EngineLimits;
  /**
   * Whether the index has such a batch. Left out where nobody else writes to the chain, and it takes nothing back: then all that is in an
   * indexed block is in the index.
   */
  readonly isIndexed?: ((batch: IndexedPlace) => Promise<boolean>) | undefined;
}

/** A batch by its topic and place. */
export interface IndexedPlace {
  readonly topic: TopicName;
  readonly sequence: number;
  readonly blockNumber: number;
}

/**
 * Natural batching: while a transaction is under way, events gather; the next one takes all that wait, up to the ledger's limits.
 * {@link Pacing} says when it goes. Events of one topic are committed in the order in which they were added.
 */
export class Gatherer {
  readonly #parts: GathererParts;
  readonly #pacing: Pacing;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #isPumpDue = false;
  #timer: { readonly due: number; readonly cancel: () => void } | undefined;
  #idle: Deferred<void> | undefined;

  constructor(parts: GathererParts) {
    this.#parts = parts;
    this.#pacing = new Pacing(parts.limits);
  }

  /**
   * Answers when the event's block is final and indexed.
   * @throws BrokerError 200300 too much waits; 100112, 100101 the chain refused the topic; 200201, 200202, 200205 as the ledger says.
   */
  add(event: Pick<Waiting, "topic" | "address" | "payload">): Promise<Committed> {
    const { limits, clock } = this.#parts;
    const bytes = encodedBytes(event.payload);
    if (
      this.#waiting.length >= limits.publishesWaitingMax ||
      this.#waitingBytes + bytes > limits.publishBytesWaitingMax
    ) {
      throw new BrokerError("busy", { details: `${this.#waiting.length} publishes wait` });
    }
    const deferred = createDeferred<Committed>();
    this.#waiting.push({ ...event, bytes, since: clock.now(), deferred });
    this.#waitingBytes += bytes;
    this.#schedule();
    return deferred.promise;
  }

  /** Answers when nothing waits and nothing is under way, or when `signal` aborts. */
  async drain(signal: AbortSignal): Promise<void> {
    if (this.#isIdle) return;
    const idle = this.#idle ?? createDeferred();
    this.#idle = idle;
    signal.addEventListener("abort", () => idle.resolve(), { once: true });
    await idle.promise;
  }

  get #isIdle(): boolean {
    return this.#pacing.underWay === 0 && this.#waiting.length === 0;
  }

  /** Pumps once the input at hand is read, so that requests that came together share a transaction. */
  #schedule(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    this.#parts.clock.soon(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    this.#expire();
    const { clock, ledger } = this.#parts;
    while (this.#waiting.length > 0 && this.#pacing.underWay < ledger.limits.transactionsInFlightMax) {
      const now = clock.now();
      const waitMs = this.#pacing.waitMs({ count: this.#waiting.length, isFull: this.#isFull }, now);
      if (waitMs > 0) {
        this.#pumpAfter(waitMs, now);
        break;
      }
      void this.#commit(this.#take());
    }
    if (!this.#isIdle) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  /** Keeps the earliest of the times asked for; a pump that comes too early asks again. */
  #pumpAfter(waitMs: number, now: number): void {
    const due = now + waitMs;
    if (this.#timer !== undefined && this.#timer.due <= due) return;
    this.#timer?.cancel();
    const cancel = this.#parts.clock.after(waitMs, () => {
      this.#timer = undefined;
      this.#pump();
    });
    this.#timer = { due, cancel };
  }

  get #isFull(): boolean {
    const { eventsPerTransactionMax, bytesPerTransactionMax } = this.#parts.ledger.limits;
    return this.#waiting.length >= eventsPerTransactionMax || this.#waitingBytes >= bytesPerTransactionMax;
  }

  /** Refuses what has waited longer than a transaction may take: it was never sent, so the caller may try again. */
  #expire(): void {
    const oldest = this.#parts.clock.now() - this.#parts.limits.transactionTimeoutMs;
    const count = this.#waiting.findIndex((event) => event.since > oldest);
    const expired = this.#waiting.splice(0, count === -1 ? this.#waiting.length : count);
    for (const event of expired) {
      this.#waitingBytes -= event.bytes;
      event.deferred.reject(new BrokerError("busy", { details: "no transaction took the event in time" }));
    }
  }

  #take(): readonly Waiting[] {
    const { eventsPerTransactionMax, bytesPerTransactionMax } = this.#parts.ledger.limits;
    let count = 0;
    let bytes = 0;
    for (const event of this.#waiting) {
      const isFull = count >= eventsPerTransactionMax || bytes + event.bytes > bytesPerTransactionMax;
      if (count > 0 && isFull) break;
      count += 1;
      bytes += event.bytes;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  async #commit(taken: readonly Waiting[]): Promise<void> {
    const { clock, metrics, ledger } = this.#parts;
    const startedAt = clock.now();
    this.#pacing.started(startedAt);
    try {
      await this.#deliver(taken);
      metrics.transactionCommitted(ledger.groupId, { events: taken.length, durationMs: clock.now() - startedAt });
    } catch (error) {
      for (const event of taken) event.deferred.reject(error);
    } finally {
      this.#pacing.ended({ events: taken.length, startedAt, waiting: this.#waiting.length }, clock.now());
      this.#schedule();
    }
  }

  /** Commits in one transaction, or in halves where the chain takes no transaction that large. */
  async #deliver(taken: readonly Waiting[]): Promise<void> {
    const groups = groupByTopic(taken);
    const outcomes = await this.#append(groups);
    if (taken.length > 1 && outcomes.some(({ status }) => status === "too-large")) {
      const middle = taken.length >> 1;
      await Promise.all([this.#deliverPart(taken.slice(0, middle)), this.#deliverPart(taken.slice(middle))]);
      return;
    }
    groups.forEach((group, index) => {
      this.#settle(group, outcomes[index]);
    });
  }

  /** One part may be committed where another fails, so each answers its own callers. */
  async #deliverPart(taken: readonly Waiting[]): Promise<void> {
    try {
      await this.#deliver(taken);
    } catch (error) {
      for (const event of taken) event.deferred.reject(error);
    }
  }

  #settle(group: readonly Waiting[], outcome: BatchOutcome | undefined): void {
    if (outcome?.status !== "committed") {
      const error = toRefusal(outcome);
      for (const event of group) event.deferred.reject(error);
      return;
    }
    group.forEach((event, index) => {
      event.deferred.resolve({ sequence: outcome.firstSequence + index, blockNumber: outcome.blockNumber });
    });
    this.#parts.metrics.eventsPublished(this.#parts.ledger.groupId, group.length);
  }

  /** Appends, then waits until the block is indexed, so that whoever is answered finds the event. */
  async #append(groups: readonly (readonly Waiting[])[]): Promise<readonly BatchOutcome[]> {
    const { clock, ledger, limits, progress } = this.#parts;
    using deadline = new Deadline(clock, limits.transactionTimeoutMs);
    const outcomes = await ledger.append(groups.map(toOutgoing), deadline.signal);
    const newest = newestOf(groups, outcomes);
    const blockNumber = newest?.blockNumber ?? -1;
    if (!(await progress.waitFor(blockNumber, deadline.signal))) throw notIndexed(blockNumber);
    if (newest !== undefined) await this.#confirm(newest);
    return outcomes;
  }

  /**
   * Another node may have indexed another block of that number, or strangers filled the block. All batches of a transaction are in one block. They are committed: what
   * fails here must not tell the caller to try again.
   */
  async #confirm(place: IndexedPlace): Promise<void> {
    const { isIndexed } = this.#parts;
    if (isIndexed === undefined) return;
    const found = await isIndexed(place).catch((cause: unknown) => {
      throw notIndexed(place.blockNumber, cause);
    });
    if (!found) throw notIndexed(place.blockNumber);
  }
}

/** The last committed batch of the highest block: where a stranger has filled the block, it is the first that the index leaves out. */
function newestOf(
  groups: readonly (readonly Waiting[])[],
  outcomes: readonly BatchOutcome[],
): IndexedPlace | undefined {
  let newest: IndexedPlace | undefined;
  for (const [index, outcome] of outcomes.entries()) {
    const topic = groups[index]?.[0]?.topic;
    if (outcome.status !== "committed" || topic === undefined) continue;
    const { firstSequence: sequence, blockNumber } = outcome;
    if (newest === undefined || blockNumber >= newest.blockNumber) newest = { topic, sequence, blockNumber };
  }
  return newest;
}

function groupByTopic(events: readonly Waiting[]): readonly (readonly Waiting[])[] {
  const groups = new Map<TopicName, Waiting[]>();
  for (const event of events) {
    const group = groups.get(event.topic);
    if (group === undefined) groups.set(event.topic, [event]);
    else group.push(event);
  }
  return [...groups.values()];
}

function toOutgoing(group: readonly Waiting[]): OutgoingBatch {
  const [first] = group;
  if (first === undefined) throw new Error("a batch holds at least one event");
  return { topic: first.topic, address: first.address, events: group.map((event) => event.payload) };
}

function toRefusal(outcome: Exclude<BatchOutcome, { status: "committed" }> | undefined): BrokerError {
  if (outcome === undefined)
    return new BrokerError("unknown", { details: "the ledger answered fewer batches than it was given" });
  if (outcome.status === "too-large")
    return new BrokerError("transactionFailed", { details: "the event is too large for a transaction of this chain" });
  if (outcome.reason === "closed-topic") return new BrokerError("topicClosed");
  if (outcome.reason === "unknown-topic") return new BrokerError("topicNotExist");
  if (outcome.reason === "sequence-spent")
    return new BrokerError("transactionFailed", { details: "the topic has no sequences left: publish to another" });
  return new BrokerError("transactionFailed", { details: "the batch was empty" });
}

/** What is answered of something that was committed, when the index does not show it. */
export function notIndexed(blockNumber: number, cause?: unknown): BrokerError {
  return new BrokerError("transactionTimeout", { details: `block ${blockNumber} is not indexed yet`, cause });
}

/** True for the failure after which nobody knows yet whether the event will be committed. */
export function isFateUnknown(error: unknown): boolean {
  return isBrokerError(error, "transactionTimeout");
}
