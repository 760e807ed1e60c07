import { BrokerError, quote } from "@stele/wire";
import { isPattern, parseTopicFilter, type TopicFilter } from "./topic-filter.ts";

const sharePrefix = "$share/";

/** A filter that several sessions share: each event goes to one of them. */
export interface SharedFilter {
  /** Sessions that name the same share and filter are its members. */
  readonly name: string;
  readonly filter: TopicFilter;
}

/**
 * The parts of `$share/name/filter` (MQTT 5.0, section 4.8.2); undefined for a text that does not begin with `$share/`.
 * @throws BrokerError 100109 if the name is empty or has a wildcard, or if no slash follows the name; for the filter, the errors of `parseTopicFilter`.
 */
export function parseSharedFilter(text: string): SharedFilter | undefined {
  if (!isShared(text)) return undefined;
  const end = text.indexOf("/", sharePrefix.length);
  const name = end < 0 ? "" : text.slice(sharePrefix.length, end);
  if (name === "" || isPattern(name)) {
    throw new BrokerError("topicPatternInvalid", { details: `${quote(text)} is not $share/name/filter` });
  }
  return { name, filter: parseTopicFilter(text.slice(end + 1)) };
}

/**
 * Parses the filter of a STOMP subscription or of a tail. Refuses `$share/name/filter`, because only MQTT has shared filters: taken as a pattern, it would match
 * only topics whose names begin with `$share/`.
 * @throws BrokerError 100109 for a shared filter; the errors of `parseTopicFilter`.
 */
export function parseOwnFilter(text: string): TopicFilter {
  const filter = parseTopicFilter(text);
  if (!isShared(filter)) return filter;
  throw new BrokerError("topicPatternInvalid", { details: `${quote(text)}: only MQTT has shared filters` });
}

/**
 * Parses the filter of a callback subscription. Accepts `$share/name/topic` without a wildcard: it is the name of a topic, and `subscribe`
 * refuses it unless that topic exists.
 * @throws BrokerError 100109 for a shared filter with a wildcard; the errors of `parseTopicFilter`.
 */
export function parseCallbackFilter(text: string): TopicFilter {
  return isPattern(text) ? parseOwnFilter(text) : parseTopicFilter(text);
}

/** The filter that the events of a subscription match: returns `filter` for `$share/name/filter`, and any other filter unchanged. */
export function eventFilterOf(text: TopicFilter): TopicFilter {
  return parseSharedFilter(text)?.filter ?? text;
}

/** Whether a text begins with `$share/`. It may still be malformed. */
export function isShared(text: string): boolean {
  return text.startsWith(sharePrefix);
}
