import type { Event } from "./event.ts";
import type { TopicFilter } from "./topic-filter.ts";

/** How often an event may come: at most once, at least once, exactly once. */
export type QoS = 0 | 1 | 2;

/** Filters of one session. */
export const sessionFiltersMax = 1_000;

/** A filter of a session, and how its events are sent. */
export interface SessionFilter {
  readonly filter: TopicFilter;
  readonly qos: QoS;
  /** Leaves out what the session itself published. */
  readonly isNoLocal: boolean;
  /** Whether the mark of a retained event is passed on (MQTT 5.0, section 3.8.3.1). */
  readonly isRetainAsPublished: boolean;
  /** When the filter receives retained events: at each subscribe, or only at the first. Never if undefined. */
  readonly retained?: "always" | "if-new" | undefined;
  /** Sent with each event that the filter matches, if defined. */
  readonly identifier: number | undefined;
}

/** Extensions, behind the extension prefix, by which an event says how it was published. */
export const sessionMarks = {
  /** The QoS of the publish; 1 where nothing says otherwise. */
  qos: "qos",
  /** The session that published it. */
  origin: "origin",
  /** When the event expires, in milliseconds since the epoch. */
  expiresAt: "expires-at",
  /** `true`: the topic retains the event. */
  retain: "retain",
} as const;

/** Value of {@link sessionMarks.retain} on an event that its topic retains. */
export const retainedMark = "true";

/** Whether the publisher asked to retain the event. An event with empty content removes the topic's retained event. */
export function isMarkedRetained(event: Pick<Event, "extensions">, extensionPrefix: string): boolean {
  return findMark(event, extensionPrefix + sessionMarks.retain) === retainedMark;
}

/** The QoS with which an event was published. Gateways of protocols with QoS write the mark. */
export function publishedQos(event: Pick<Event, "extensions">, extensionPrefix: string): QoS {
  const value = findMark(event, extensionPrefix + sessionMarks.qos);
  if (value === "0") return 0;
  return value === "2" ? 2 : 1;
}

/** The session that published an event, if the event names one. */
export function originOf(event: Pick<Event, "extensions">, extensionPrefix: string): string | undefined {
  return findMark(event, extensionPrefix + sessionMarks.origin);
}

function findMark({ extensions }: Pick<Event, "extensions">, key: string): string | undefined {
  return extensions.find(([name]) => name === key)?.[1];
}
