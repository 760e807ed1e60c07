import { BatchWriter, formatEventId } from "@stele/wire";
import type { EventPayload } from "../../domain/event.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Logger } from "../../lib/logger.ts";
import type { BatchOutcome, LedgerLimits, OutgoingBatch } from "../../ports/ledger.ts";
import type { OnSettled } from "../broker.ts";
import { answerAll } from "./answer-all.ts";
import type { Claim } from "./claim.ts";
import type { OpenTopic } from "./open-topics.ts";
import { isFateUnknown } from "./refusals.ts";

/** A publish that waits for a transaction. */
export interface Submission {
  readonly topic: OpenTopic;
  readonly payload: EventPayload;
  /** Bytes that the payload takes in a batch. */
  readonly bytes: number;
  /** When the publish came, in milliseconds of the monotonic clock. */
  readonly since: number;
  readonly onSettled: OnSettled;
  /** Undefined for a publish without a key. */
  readonly claim?: Claim | undefined;
}

/** Publishes of one topic for one transaction, encoded as they come. One settlement answers all of them. */
export class DraftBatch {
  readonly topic: OpenTopic;
  readonly #writer: BatchWriter;
  #callers: OnSettled[];
  /** Claims by caller. The parts of a split batch share the map. Undefined while no publish has a key. */
  #claims: Map<OnSettled, Claim> | undefined;

  constructor(topic: OpenTopic, writer = new BatchWriter(), callers: OnSettled[] = []) {
    this.topic = topic;
    this.#writer = writer;
    this.#callers = callers;
  }

  get count(): number {
    return this.#callers.length;
  }

  /** The claims of the publishes with a key, in order. */
  get claims(): readonly Claim[] {
    const claims = this.#claims;
    return claims === undefined ? [] : this.#callers.flatMap((caller) => claims.get(caller) ?? []);
  }

  add({ payload, onSettled, claim }: Submission): void {
    this.#writer.add(payload);
    // A first `push` allocates 17 slots, and with many topics most batches have one event.
    if (this.count === 0) this.#callers = [onSettled];
    else this.#callers.push(onSettled);
    if (claim === undefined) return;
    this.#claims ??= new Map();
    this.#claims.set(onSettled, claim);
  }

  /** The batch without the publishes of these claims; undefined if no others are left. */
  without(claims: ReadonlySet<Claim>): DraftBatch | undefined {
    const isKept = this.#callers.map((caller) => {
      const claim = this.#claims?.get(caller);
      return claim === undefined || !claims.has(claim);
    });
    if (!isKept.includes(true)) return undefined;
    const callers = this.#callers.filter((_, index) => isKept[index]);
    const kept = new DraftBatch(
      this.topic,
      this.#writer.pick((index) => isKept[index] === true),
      callers,
    );
    kept.#claims = this.#claims;
    return kept;
  }

  /** The events before `index`, and the others. */
  split(index: number): readonly [DraftBatch, DraftBatch] {
    return [this.#slice(0, index), this.#slice(index, this.count)];
  }

  toOutgoing(): OutgoingBatch {
    const { name, address, opening } = this.topic;
    return { topic: name, address, count: this.count, events: this.#writer.finish(), opening };
  }

  commit(
    { firstSequence, blockNumber }: BatchOutcome & { readonly status: "committed" },
    { logger }: { readonly logger: Logger },
  ): void {
    const { name, digest: topicDigest } = this.topic;
    let sequence = firstSequence;
    const answer = (onSettled: OnSettled): void => {
      const eventId = formatEventId({ topicDigest, sequence, blockNumber });
      sequence += 1;
      onSettled({ topic: name, eventId, status: "SUCCESS" });
    };
    answerAll(this.#callers, answer, logger);
  }

  /** Answers TIMEOUT if the error says that the fate of the events is unknown. */
  refuse(error: unknown, { logger }: { readonly logger: Logger }): void {
    const { name: topic } = this.topic;
    const outcome = isFateUnknown(error)
      ? ({ topic, eventId: "", status: "TIMEOUT" } as const)
      : ({ status: "REFUSED", error } as const);
    answerAll(this.#callers, (onSettled) => onSettled(outcome), logger);
  }

  #slice(from: number, to: number): DraftBatch {
    const part = new DraftBatch(this.topic, this.#writer.slice(from, to), this.#callers.slice(from, to));
    part.#claims = this.#claims;
    return part;
  }
}

/** Limits of one transaction. */
export type DraftLimits = Omit<LedgerLimits, "transactionsInFlightMax">;

/** A transaction that is still collecting publishes, with a batch for each topic. */
export class Draft {
  /** When the first publish of the draft came. */
  #firstAt = Number.POSITIVE_INFINITY;
  readonly #batches = new Map<TopicName, DraftBatch>();
  #count = 0;
  #bytes = 0;
  #hasClaims = false;
  /** Whether the draft's events form a transaction by themselves: no other publish joins them, and the batcher does not split them. */
  readonly isAtomic: boolean;

  constructor({ isAtomic }: { readonly isAtomic: boolean } = { isAtomic: false }) {
    this.isAtomic = isAtomic;
  }

  get count(): number {
    return this.#count;
  }

  /** Whether a publish has a key. */
  get hasClaims(): boolean {
    return this.#hasClaims;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get firstAt(): number {
    return this.#firstAt;
  }

  /** The batches, in the order in which their topics came. */
  get batches(): readonly DraftBatch[] {
    return [...this.#batches.values()];
  }

  /** Whether there is room for an event. An atomic draft never has room; in any other draft the first event always has, however long it is. */
  hasRoomFor({ topic, bytes }: Pick<Submission, "topic" | "bytes">, limits: DraftLimits): boolean {
    if (this.isAtomic) return false;
    if (this.#count === 0) return true;
    const further = this.#batches.has(topic.name) ? this.#batches.size - 1 : this.#batches.size;
    const isWithin = this.#bytes + bytes + further * limits.bytesPerTopic <= limits.bytesPerTransactionMax;
    return this.#count < limits.eventsPerTransactionMax && isWithin;
  }

  isFull(limits: DraftLimits): boolean {
    const isFilled = this.#bytesIn(limits) >= limits.bytesPerTransactionMax;
    return this.isAtomic || isFilled || this.#count >= limits.eventsPerTransactionMax;
  }

  /** Whether the draft is within the limits. A single event always is, however long it is. */
  isWithin(limits: DraftLimits): boolean {
    if (this.#count <= 1) return true;
    return this.#count <= limits.eventsPerTransactionMax && this.#bytesIn(limits) <= limits.bytesPerTransactionMax;
  }

  #bytesIn({ bytesPerTopic }: DraftLimits): number {
    return this.#bytes + (this.#batches.size - 1) * bytesPerTopic;
  }

  add(submission: Submission): void {
    this.#batchOf(submission.topic).add(submission);
    this.#count += 1;
    this.#bytes += submission.bytes;
    this.#firstAt = Math.min(this.#firstAt, submission.since);
    if (submission.claim !== undefined) this.#hasClaims = true;
  }

  #batchOf(topic: OpenTopic): DraftBatch {
    const known = this.#batches.get(topic.name);
    if (known !== undefined) return known;
    const batch = new DraftBatch(topic);
    this.#batches.set(topic.name, batch);
    return batch;
  }
}

/** Whether the batches can be split into two parts. */
export function isDivisible(batches: readonly DraftBatch[]): boolean {
  return batches.length > 1 || (batches[0]?.count ?? 0) > 1;
}
