import { BatchWriter, formatEventId } from "@stele/wire";
import type { EventPayload } from "../../domain/event.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { BatchOutcome, OutgoingBatch } from "../../ports/ledger.ts";
import type { OnSettled } from "../broker.ts";
import type { OpenTopic } from "./open-topics.ts";
import { isFateUnknown } from "./refusals.ts";

/** A publish that waits for a transaction. */
export interface Submission {
  readonly topic: OpenTopic;
  readonly payload: EventPayload;
  /** Bytes that the payload takes in a batch. */
  readonly bytes: number;
  /** When it came. */
  readonly since: number;
  readonly onSettled: OnSettled;
}

/** Publishes of one topic for one transaction, written as they come. One settlement answers all of them. */
export class DraftBatch {
  readonly topic: OpenTopic;
  readonly #writer: BatchWriter;
  readonly #callers: OnSettled[];

  constructor(topic: OpenTopic, writer = new BatchWriter(), callers: OnSettled[] = []) {
    this.topic = topic;
    this.#writer = writer;
    this.#callers = callers;
  }

  get count(): number {
    return this.#callers.length;
  }

  add({ payload, onSettled }: Submission): void {
    this.#writer.add(payload);
    this.#callers.push(onSettled);
  }

  /** The events before `index`, and the others. */
  split(index: number): readonly [DraftBatch, DraftBatch] {
    return [this.#slice(0, index), this.#slice(index, this.count)];
  }

  toOutgoing(): OutgoingBatch {
    const { name, address } = this.topic;
    return { topic: name, address, count: this.count, events: this.#writer.finish() };
  }

  commit({ firstSequence, blockNumber }: BatchOutcome & { readonly status: "committed" }): void {
    const { name, digest: topicDigest } = this.topic;
    let sequence = firstSequence;
    for (const onSettled of this.#callers) {
      onSettled({ topic: name, eventId: formatEventId({ topicDigest, sequence, blockNumber }), status: "SUCCESS" });
      sequence += 1;
    }
  }

  /** Answers TIMEOUT where the error says that nobody knows as yet. */
  refuse(error: unknown): void {
    const { name: topic } = this.topic;
    const outcome = isFateUnknown(error)
      ? ({ topic, eventId: "", status: "TIMEOUT" } as const)
      : ({ status: "REFUSED", error } as const);
    for (const onSettled of this.#callers) onSettled(outcome);
  }

  #slice(from: number, to: number): DraftBatch {
    return new DraftBatch(this.topic, this.#writer.slice(from, to), this.#callers.slice(from, to));
  }
}

/** What may go into one transaction. */
export interface DraftLimits {
  readonly eventsPerTransactionMax: number;
  readonly bytesPerTransactionMax: number;
}

/** One transaction while publishes come in: a batch for each topic. */
export class Draft {
  /** When the last of its publishes came. */
  lastAt = 0;
  readonly #batches = new Map<TopicName, DraftBatch>();
  #count = 0;
  #bytes = 0;

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** In the order in which their topics came. */
  get batches(): readonly DraftBatch[] {
    return [...this.#batches.values()];
  }

  /** Whether an event of so many bytes has room. The first one has, however long it is. */
  hasRoomFor(bytes: number, { eventsPerTransactionMax, bytesPerTransactionMax }: DraftLimits): boolean {
    return (
      this.#count === 0 || (this.#count < eventsPerTransactionMax && this.#bytes + bytes <= bytesPerTransactionMax)
    );
  }

  isFull({ eventsPerTransactionMax, bytesPerTransactionMax }: DraftLimits): boolean {
    return this.#count >= eventsPerTransactionMax || this.#bytes >= bytesPerTransactionMax;
  }

  add(submission: Submission): void {
    this.#batchOf(submission.topic).add(submission);
    this.#count += 1;
    this.#bytes += submission.bytes;
    this.lastAt = submission.since;
  }

  #batchOf(topic: OpenTopic): DraftBatch {
    const known = this.#batches.get(topic.name);
    if (known !== undefined) return known;
    const batch = new DraftBatch(topic);
    this.#batches.set(topic.name, batch);
    return batch;
  }
}
