import type { Event } from "./event.ts";
import type { TopicFilter } from "./topic-filter.ts";

/** Quality of service: 0 delivers an event at most once, 1 at least once, 2 exactly once. */
export type QoS = 0 | 1 | 2;

/** Maximum number of filters of one session. */
export const sessionFiltersMax = 1_000;

/** A filter of a session, and how its events are sent. */
export interface SessionFilter {
  readonly filter: TopicFilter;
  readonly qos: QoS;
  /** Whether the filter leaves out events that the session itself published. */
  readonly isNoLocal: boolean;
  /** Whether the mark of a retained event is passed on (MQTT 5.0, section 3.8.3.1). */
  readonly isRetainAsPublished: boolean;
  /** When the filter receives retained events: at each subscribe, or only at the first. Never if undefined. */
  readonly retained?: "always" | "if-new" | undefined;
  /** Identifier to send with each event that the filter matches; undefined for none. */
  readonly identifier: number | undefined;
}

/** Extension keys, without the extension prefix, that record how an event was published. */
export const sessionMarks = {
  /** The QoS of the publish; 1 if the extension is missing. */
  qos: "qos",
  /** The session that published the event. */
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
