import type { Event, EventBatch } from "../../domain/event.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";

/** Receives the indexed batches that match its filters. Its methods return at once and never throw. */
export interface Reader {
  /** Called with a batch that was just indexed: in the order of the index, and once for every matching filter. */
  offer(batch: EventBatch): void;
  /** Called once with an event that is not committed to the chain, and with all matching filters of the reader. */
  pass(event: Event, filters: readonly TopicFilter[]): void;
  /** Called when the next indexed batches are not offered: the reader must read them from the store. */
  fallBehind(): void;
  /** Called in a slice of the event loop, soon after {@link offer} or {@link fallBehind}. One `wake` answers all of their calls since the `wake` before. */
  wake(): void;
}
