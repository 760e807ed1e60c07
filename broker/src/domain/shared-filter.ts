import { BrokerError, quote } from "@stele/wire";
import { isPattern, parseTopicFilter, type TopicFilter } from "./topic-filter.ts";

const sharePrefix = "$share/";

/** A filter whose events go to one of several sessions each. */
export interface SharedFilter {
  /** Sessions that name the same share and filter are its members. */
  readonly name: string;
  readonly filter: TopicFilter;
}

/**
 * The parts of `$share/name/filter` (MQTT 5.0, section 4.8.2); undefined for a text that does not begin with `$share/`.
 * @throws BrokerError 100109 where the name is empty or has a wildcard, or there is no filter; and as `parseTopicFilter` does.
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

/** The filter that the events of a subscription match: `filter` for `$share/name/filter`, and any other filter itself. */
export function eventFilterOf(text: TopicFilter): TopicFilter {
  return parseSharedFilter(text)?.filter ?? text;
}

/** Whether a text is `$share/name/filter`. */
export function isShared(text: string): boolean {
  return text.startsWith(sharePrefix);
}
