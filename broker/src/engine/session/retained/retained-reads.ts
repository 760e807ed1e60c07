import { unaborted, type CancelSignal } from "../../../lib/cancellation.ts";
import type { Event, EventBatch } from "../../../domain/event.ts";
import type { GroupId } from "../../../domain/group-id.ts";
import { extensionsBytes } from "../../../domain/event-rules.ts";
import { before, type Position } from "../../../domain/position.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import { Semaphore } from "../../../lib/semaphore.ts";
import { untilAborted } from "../../../lib/until-aborted.ts";
import type { RetainedEvent, Store } from "../../../ports/store.ts";
import { eventsOf } from "../../batch-events.ts";
import type { IndexProgress } from "../../index-progress.ts";
import type { EngineLimits } from "../../limits.ts";

/** Estimated memory of a kept event besides its content and extensions, in bytes. */
const overheadBytes = 512;

/** The place of one event. */
export interface EventPlace {
  readonly topic: TopicName;
  readonly position: Position;
}

export interface RetainedReadsParts {
  readonly store: Pick<Store, "listRetained" | "readBatches">;
  /** Fills in the events that the store has dropped. */
  readonly readDropped: (groupId: GroupId, batches: readonly EventBatch[]) => Promise<readonly EventBatch[]>;
  readonly limits: Pick<EngineLimits, "feedReadsMax" | "recentBytesMax">;
}

interface IndexReader {
  readonly groupId: GroupId;
  readonly progress: IndexProgress;
}

interface KeptEvent {
  readonly event: Promise<Event | undefined>;
  bytes: number;
}

/**
 * Reads single events by their places for the sessions of a node: retained events, and events to repeat. Thousands of clients may subscribe to the same
 * topics at once. So at most `feedReadsMax` reads are in progress, and sessions share the most recently read events, up to `recentBytesMax` bytes.
 */
export class RetainedReads {
  readonly #parts: RetainedReadsParts;
  readonly #semaphore: Semaphore;
  /** Recently read events, the least recently used first. */
  readonly #kept = new Map<string, KeptEvent>();
  #bytes = 0;

  constructor(parts: RetainedReadsParts) {
    this.#parts = parts;
    this.#semaphore = new Semaphore(parts.limits.feedReadsMax);
  }

  /** Undefined if `signal` aborts first. @throws what the store throws. */
  list(
    groupId: GroupId,
    page: Parameters<Store["listRetained"]>[1],
    signal: CancelSignal,
  ): Promise<readonly RetainedEvent[] | undefined> {
    return this.#semaphore.run(() => this.#parts.store.listRetained(groupId, page), signal);
  }

  /** Undefined if the event is no longer on the chain, or if `signal` aborts first. @throws what the store throws. */
  find(reader: IndexReader, place: EventPlace, signal: CancelSignal): Promise<Event | undefined> {
    return untilAborted(this.#find(reader, place), signal);
  }

  #find({ groupId, progress }: IndexReader, place: EventPlace): Promise<Event | undefined> {
    // After a rollback, another event may have the position.
    const key = `${groupId} ${progress.version} ${place.position}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return kept.event;
    }
    const event = this.#read(groupId, place);
    this.#keep(key, event);
    return event;
  }

  #keep(key: string, event: Promise<Event | undefined>): void {
    const kept: KeptEvent = { event, bytes: 0 };
    this.#kept.set(key, kept);
    this.#grow(kept, overheadBytes);
    void this.#weigh(key, kept);
  }

  /** Never rejects. Drops a read that failed, so that the next one asks the store again. */
  async #weigh(key: string, kept: KeptEvent): Promise<void> {
    const found = await kept.event.catch(() => undefined);
    if (found === undefined) this.#drop(key, kept);
    else if (this.#kept.get(key) === kept) this.#grow(kept, bytesOf(found));
  }

  #grow(kept: KeptEvent, bytes: number): void {
    kept.bytes += bytes;
    this.#bytes += bytes;
    for (const [key, oldest] of this.#kept) {
      if (this.#bytes <= this.#parts.limits.recentBytesMax) return;
      this.#drop(key, oldest);
    }
  }

  #drop(key: string, kept: KeptEvent): void {
    if (this.#kept.get(key) !== kept) return;
    this.#kept.delete(key);
    this.#bytes -= kept.bytes;
  }

  async #read(groupId: GroupId, { topic, position }: EventPlace): Promise<Event | undefined> {
    const place = { after: before(position), upTo: position, topic, batchesMax: 1, bytesMax: 1 };
    const { store, readDropped } = this.#parts;
    const found = await this.#semaphore.run(() => store.readBatches(groupId, place), unaborted);
    const [batch] = await readDropped(groupId, found ?? []);
    return batch && eventsOf(batch)[position - batch.firstPosition];
  }
}

function bytesOf({ content, extensions }: Event): number {
  return content.byteLength + extensionsBytes(extensions);
}
