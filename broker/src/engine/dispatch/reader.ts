import type { Event, EventBatch } from "../../domain/event.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";

/** Receives the indexed batches of its filters: a feed, or a connection that takes whole batches. Its methods return at once and never throw. */
export interface Reader {
  /** A batch that was just indexed. Batches come in the order of the index, each once for every filter that matches. */
  offer(batch: EventBatch): void;
  /** An event that is committed nowhere, once, with all filters of the reader that match. */
  pass(event: Event, filters: readonly TopicFilter[]): void;
  /** The next indexed batches are not offered. The reader must read them from the store. */
  fallBehind(): void;
  /** Called in a slice of the event loop after {@link offer} or {@link fallBehind}: once for all calls since the last one. */
  wake(): void;
}
