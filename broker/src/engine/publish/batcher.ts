import { BrokerError, encodedBytes } from "@stele/wire";
import type { EventPayload } from "../../domain/event.ts";
import { unaborted } from "../../lib/cancellation.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { Logger } from "../../lib/logger.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import type { Clock } from "../../ports/clock.ts";
import type { AppendOptions, BatchOutcome, Ledger } from "../../ports/ledger.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type { OnSettled } from "../broker.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { EngineLimits } from "../limits.ts";
import { Deadline } from "../time.ts";
import { type Claim, mayAllStart } from "./claim.ts";
import type { ClaimRecorder } from "./claim-recorder.ts";
import { Draft, type DraftBatch, isDivisible, type Submission } from "./draft.ts";
import type { OpenTopic, OpenTopics } from "./open-topics.ts";
import { Pacing } from "./pacing.ts";
import { type IndexedPlace, placesOf } from "./indexed-place.ts";
import type { NodesView } from "./nodes-view.ts";
import { notIndexed, toAppendRefusal, toRefusal } from "./refusals.ts";
import { type Probe, SendingTurns } from "./sending-turns.ts";

export interface BatcherOptions {
  readonly ledger: Ledger;
  readonly progress: IndexProgress;
  readonly topics: Pick<OpenTopics, "forget">;
  readonly recorder: Pick<ClaimRecorder, "record">;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  /** Undefined for a single node. */
  readonly nodes?: Pick<NodesView, "checkMembership"> | undefined;
  /**
   * Whether the index has a transaction's batches at these places, which have ascending blocks; false if `signal` aborts before that is known. Undefined if
   * nobody else writes to the chain and it has no reorgs: then every batch of an indexed block is in the index.
   */
  readonly isIndexed?: ((batches: readonly IndexedPlace[], signal: AbortSignal) => Promise<boolean>) | undefined;
}

/** The room that a caller needs. */
export interface Need {
  readonly count: number;
  /** Bytes that the events take in a batch. */
  readonly bytes: number;
}

interface DeliverOptions extends Pick<AppendOptions, "onAccepted"> {
  /** Whether the chain must commit all batches or none. */
  readonly isAtomic: boolean;
  /** Called with batches that are too large for one transaction of the chain. */
  readonly split: (batches: readonly DraftBatch[]) => Promise<void>;
}

/** An event of an open topic, with the caller's callback. */
export interface TopicEvent {
  readonly topic: OpenTopic;
  readonly payload: EventPayload;
  readonly onSettled: OnSettled;
  /** Set for a publish with a key: what to record before the ledger gets the event. */
  readonly claim?: Claim | undefined;
}

/**
 * Natural batching: while a transaction is in progress, publishes collect in drafts of the next ones, each as large as the ledger's limits allow.
 * {@link Pacing} decides when to send the oldest draft. Events of one topic are committed in the order in which they were added.
 */
export class Batcher {
  readonly #options: BatcherOptions;
  readonly #pacing: Pacing;
  /** Oldest first; only the last one gets further events. */
  readonly #drafts: Draft[] = [];
  #waitingCount = 0;
  #waitingBytes = 0;
  #isPumpDue = false;
  readonly #turns: SendingTurns;
  /** Limits the transactions in flight: a draft that is too large has many parts. */
  readonly #inFlight: Semaphore;
  #lastSplit: Promise<void> = Promise.resolve();
  /** When the due pump was scheduled. All publishes until that pump count from then, since they come in the same turn of the event loop. */
  #turnAt = 0;
  #timer: { readonly due: number; readonly cancel: () => void } | undefined;
  #idle: Deferred<void> | undefined;
  readonly #roomWaiters: { readonly need: Need; readonly callback: () => void }[] = [];
  #isCallingWaiters = false;

  constructor(options: BatcherOptions) {
    this.#options = options;
    this.#pacing = new Pacing(options.limits);
    this.#turns = new SendingTurns(options.clock);
    this.#inFlight = new Semaphore(options.ledger.limits.transactionsInFlightMax);
  }

  /**
   * Settles, in a later turn, with SUCCESS when the event's block is final and indexed, with TIMEOUT if that is not known in time, or with an error: 100101,
   * 100112, 100113 if the chain refused the topic or the account; 100201 if the event fits into no transaction; 200202, 200205 from the ledger; 200207 if this
   * node's membership ended before the ledger sent the event; 200300 if the event waited too long for a transaction.
   * @throws BrokerError 200300 if the queue is full; 200207 if this node is not a member.
   */
  add({ topic, payload, onSettled, claim }: TopicEvent): void {
    const bytes = encodedBytes(payload);
    this.#check(1, bytes);
    this.#schedule();
    const submission = { topic, payload, bytes, since: this.#turnAt, onSettled, claim };
    this.#openDraft(submission).add(submission);
    this.#waitingCount += 1;
    this.#waitingBytes += bytes;
    const [oldest] = this.#drafts;
    if (oldest !== undefined && !this.#isBlocked && this.#pacing.isHalf(this.#waitingCount)) this.#send(oldest);
  }

  /** As {@link add}, for events that form a transaction of their own. @throws BrokerError 100201 if they do not fit into one; 200300, 200207. */
  addAll(events: readonly TopicEvent[]): void {
    const draft = new Draft({ isAtomic: true });
    this.#schedule();
    for (const event of events) draft.add({ ...event, bytes: encodedBytes(event.payload), since: this.#turnAt });
    if (!draft.isWithin(this.#options.ledger.limits)) throw tooLarge();
    this.#check(draft.count, draft.bytes);
    this.#drafts.push(draft);
    this.#waitingCount += draft.count;
    this.#waitingBytes += draft.bytes;
  }

  /**
   * Also refuses all events while this node is not a member. It could neither record a transaction before sending it nor learn that the index has it: its
   * callers would wait long for a TIMEOUT.
   */
  #check(count: number, bytes: number): void {
    const { nodes, limits } = this.#options;
    const { publishesWaitingMax, publishBytesWaitingMax } = limits;
    nodes?.checkMembership();
    if (this.#waitingCount + count > publishesWaitingMax || this.#waitingBytes + bytes > publishBytesWaitingMax) {
      throw new BrokerError("busy", { details: `${this.#waitingCount} publishes wait` });
    }
  }

  /**
   * Whether there is room. If not, calls back once, in a later turn, when there is. Waiters are called in order, and nobody overtakes them, so that a caller
   * that needs much room does not starve. A need that never fits gets its turn once the queue is empty; {@link add} then refuses what exceeds the limits.
   */
  whenRoom(need: Need, callback: () => void): boolean {
    const isBehind = this.#roomWaiters.length > 0 && !this.#isCallingWaiters;
    if (!isBehind && this.#hasRoomFor(need)) return true;
    this.#roomWaiters.push({ need, callback });
    return false;
  }

  /** Whether the queue is empty or has room. Leaves half of the bytes for events that are on their way to {@link add}. */
  #hasRoomFor({ count, bytes }: Need): boolean {
    const { publishesWaitingMax, publishBytesWaitingMax } = this.#options.limits;
    if (this.#waitingCount === 0) return true;
    const isWithin = this.#waitingBytes + bytes <= publishBytesWaitingMax / 2;
    return isWithin && this.#waitingCount + count <= publishesWaitingMax;
  }

  /** Resolves when nothing waits and nothing is in progress, or when `signal` aborts. */
  async drain(signal: AbortSignal): Promise<void> {
    if (this.#isIdle || signal.aborted) return;
    const idle = this.#idle ?? createDeferred();
    this.#idle = idle;
    signal.addEventListener("abort", () => idle.resolve(), { once: true });
    await idle.promise;
  }

  get #isIdle(): boolean {
    return this.#pacing.underWay === 0 && this.#waitingCount === 0;
  }

  #openDraft(submission: Submission): Draft {
    const last = this.#drafts.at(-1);
    if (last?.hasRoomFor(submission, this.#options.ledger.limits) === true) return last;
    const draft = new Draft();
    this.#drafts.push(draft);
    return draft;
  }

  /** Pumps after the current input is read, so that requests that came together share a transaction. */
  #schedule(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    this.#turnAt = this.#options.clock.monotonic();
    this.#options.clock.soon(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { clock, limits } = this.#options;
    const now = clock.monotonic();
    this.#expire(now);
    for (let [draft] = this.#drafts; draft !== undefined; [draft] = this.#drafts) {
      const waitMs = this.#isBlocked
        ? draft.firstAt + limits.transactionTimeoutMs - now
        : this.#pacing.waitMs({ count: this.#waitingCount, isFull: this.#isFull(draft) }, now);
      if (waitMs > 0) {
        this.#pumpAfter(waitMs, now);
        break;
      }
      this.#send(draft);
    }
    if (!this.#isIdle) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  get #isBlocked(): boolean {
    return this.#turns.isHeld || this.#pacing.underWay >= this.#options.ledger.limits.transactionsInFlightMax;
  }

  #isFull(draft: Draft): boolean {
    return this.#drafts.length > 1 || draft.isFull(this.#options.ledger.limits);
  }

  /** Pumps at the earliest of the requested times. A pump that comes too early calls this method again. */
  #pumpAfter(waitMs: number, now: number): void {
    const due = now + waitMs;
    if (this.#timer !== undefined && this.#timer.due <= due) return;
    this.#timer?.cancel();
    const cancel = this.#options.clock.after(waitMs, () => {
      this.#timer = undefined;
      this.#pump();
    });
    this.#timer = { due, cancel };
  }

  /** Refuses drafts whose first event has waited longer than a transaction may take: they were never sent, so the callers may try again. */
  #expire(now: number): void {
    const oldest = now - this.#options.limits.transactionTimeoutMs;
    for (let [draft] = this.#drafts; draft !== undefined && draft.firstAt <= oldest; [draft] = this.#drafts) {
      this.#drop(draft);
      this.#refuseAll(draft.batches, new BrokerError("busy", { details: "publish timed out in the queue; retry" }));
    }
  }

  /** Sends the oldest draft. Its callers are answered in a later turn. */
  #send(draft: Draft): void {
    this.#drop(draft);
    void this.#commit(draft);
  }

  /** Removes the oldest draft from the queue. */
  #drop(draft: Draft): void {
    this.#drafts.shift();
    this.#waitingCount -= draft.count;
    this.#waitingBytes -= draft.bytes;
    if (this.#roomWaiters.length > 0) this.#options.clock.soon(() => this.#callWaiters());
  }

  #callWaiters(): void {
    this.#isCallingWaiters = true;
    try {
      for (let [first] = this.#roomWaiters; first !== undefined; [first] = this.#roomWaiters) {
        if (!this.#hasRoomFor(first.need)) break;
        this.#roomWaiters.shift();
        first.callback();
      }
    } finally {
      this.#isCallingWaiters = false;
    }
  }

  async #commit(draft: Draft): Promise<void> {
    const { clock, metrics, ledger, recorder } = this.#options;
    const { count: events } = draft;
    const startedAt = clock.monotonic();
    this.#pacing.started(events, startedAt);
    let probe: Probe | undefined;
    try {
      const recorded = recorder.record(draft);
      const batches = recorded instanceof Promise ? await recorded : recorded;
      if (batches.length === 0) return;
      const turn = this.#turns.take();
      if (turn !== undefined) await turn;
      const { isAtomic } = draft;
      const split = async (parts: readonly DraftBatch[]): Promise<void> => {
        probe?.refused();
        return isAtomic ? this.#refuseAll(parts, tooLarge()) : this.#splitInTurn(parts);
      };
      probe = this.#turns.probe({ bytes: draft.bytes, topics: batches.length });
      const onAccepted = (): void => {
        probe?.accepted();
        this.#schedule();
      };
      const isCommitted = await this.#deliver(batches, { isAtomic, split, onAccepted });
      const durationMs = clock.monotonic() - startedAt;
      if (isCommitted) metrics.transactionCommitted(ledger.groupId, { events, durationMs });
    } finally {
      probe?.ended();
      this.#pacing.ended({ events, startedAt, waiting: this.#waitingCount }, clock.monotonic());
      this.#schedule();
    }
  }

  /** Appends the batches; calls `split` if they are too large for one transaction. Answers every caller. False if this append failed, not if a part failed. */
  async #deliver(
    batches: readonly DraftBatch[],
    { split, ...options }: DeliverOptions = { isAtomic: false, split: (all) => this.#deliverParts(all) },
  ): Promise<boolean> {
    const outcomes = await this.#tryAppend(batches, options);
    if (outcomes === undefined) return false;
    const isTooLarge = outcomes.some(({ status }) => status === "too-large");
    if (isTooLarge && isDivisible(batches)) await split(batches);
    else this.#settle(batches, outcomes);
    return true;
  }

  /** Undefined if the append failed; then every caller has been answered. */
  async #tryAppend(
    batches: readonly DraftBatch[],
    options: AppendOptions,
  ): Promise<readonly BatchOutcome[] | undefined> {
    try {
      return await this.#inFlight.run(() => this.#append(batches, options), unaborted);
    } catch (error) {
      this.#refuseAll(batches, toAppendRefusal(error));
      return undefined;
    }
  }

  async #splitInTurn(batches: readonly DraftBatch[]): Promise<void> {
    const split = this.#lastSplit.then(() => this.#deliverParts(batches));
    this.#lastSplit = split.catch(() => {}); // The `await` below gets the error.
    await this.#turns.hold(split);
  }

  /** Delivers two halves. Halves of several topics go at once; halves of one topic go one after the other, so that its events keep their order. */
  async #deliverParts(batches: readonly DraftBatch[]): Promise<void> {
    const [first] = batches;
    const middle = batches.length >> 1;
    if (batches.length > 1) {
      await Promise.all([this.#deliver(batches.slice(0, middle)), this.#deliver(batches.slice(middle))]);
    } else if (first !== undefined) {
      for (const part of first.split(first.count >> 1)) await this.#deliver([part]);
    }
  }

  #settle(batches: readonly DraftBatch[], outcomes: readonly BatchOutcome[]): void {
    const { metrics, ledger, topics } = this.#options;
    let committed = 0;
    for (const [index, batch] of batches.entries()) {
      const outcome = outcomes[index];
      if (outcome?.status === "committed") {
        batch.commit(outcome, this.#options);
        committed += batch.count;
      } else {
        // Whatever the reason, the next publish reads the topic from the index.
        topics.forget(batch.topic.name);
        batch.refuse(toRefusal(outcome), this.#options);
      }
    }
    if (committed > 0) metrics.eventsPublished(ledger.groupId, committed);
  }

  #refuseAll(batches: readonly DraftBatch[], error: unknown): void {
    for (const batch of batches) batch.refuse(error, this.#options);
  }

  /** Appends, then waits until the block is indexed, so that a caller that has its answer can read the event. */
  async #append(batches: readonly DraftBatch[], options: AppendOptions): Promise<readonly BatchOutcome[]> {
    const { clock, ledger, limits, progress } = this.#options;
    using deadline = new Deadline(clock, limits.transactionTimeoutMs);
    const outgoing = batches.map((batch) => batch.toOutgoing());
    const mayStart = mayAllStart(batches.flatMap((batch) => batch.claims));
    const { isAtomic, onAccepted } = options;
    const outcomes = await ledger.append(outgoing, deadline.signal, { mayStart, isAtomic, onAccepted });
    const places = placesOf(outgoing, outcomes);
    const blockNumber = places.at(-1)?.block.number ?? -1;
    if (!(await progress.waitFor(blockNumber, deadline.signal))) throw notIndexed(blockNumber);
    if (places.length > 0) await this.#confirm(places, blockNumber, deadline.signal);
    return outcomes;
  }

  /**
   * Checks that the index has the transaction's batches at their places: another node may have indexed another block of that number, or strangers may have
   * filled the block. The batches are committed, so an error here must not tell the caller to try again.
   */
  async #confirm(places: readonly IndexedPlace[], blockNumber: number, signal: AbortSignal): Promise<void> {
    const { isIndexed } = this.#options;
    if (isIndexed === undefined) return;
    const found = await isIndexed(places, signal).catch((cause: unknown) => {
      throw notIndexed(blockNumber, cause);
    });
    if (!found) throw notIndexed(blockNumber);
  }
}

function tooLarge(): BrokerError {
  return new BrokerError("contentTooLong", {
    details: "the events together do not fit into one transaction of this chain",
  });
}
