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
 * Finds the events beyond the cursor that need no repeat: in each topic, the accepted events before the first one that was not accepted. Later events of the
 * topic are repeated, to keep the topic's order. `entries` must have ascending positions.
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
