import type { Event } from "../../domain/event.ts";
import type { WindowEntry } from "../../domain/event-window.ts";
import type { Position } from "../../domain/position.ts";
import type { TopicName } from "../../domain/topic-name.ts";

/** Positions of events beyond the cursor that their receiver has accepted. */
export type AcceptedAhead = ReadonlySet<Position>;

interface Entry extends WindowEntry {
  readonly event: Pick<Event, "topic">;
}

/**
 * The positions of events that need no repeat, from entries in ascending position: of each topic, the events before the first that was not accepted. Later
 * ones of that topic are repeated, to keep its order.
 */
export function findAcceptedAhead(entries: Iterable<Entry>): AcceptedAhead {
  const ahead = new Set<Position>();
  const cut = new Set<TopicName>();
  for (const { position, end, event } of entries) {
    if (end !== "accepted") cut.add(event.topic);
    else if (!cut.has(event.topic)) ahead.add(position);
  }
  return ahead;
}
