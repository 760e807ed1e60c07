import { isPattern, matchesFilter, type TopicFilter } from "./topic-filter.ts";
import { parseTopicName, type TopicName } from "./topic-name.ts";

/** The topics whose events a subscription wants. */
export interface Interest {
  /** The topic, if there can be only one; else undefined. */
  readonly only: TopicName | undefined;
  includes(topic: TopicName): boolean;
}

export function toInterest(filter: TopicFilter): Interest {
  return {
    only: isPattern(filter) ? undefined : parseTopicName(filter),
    includes: (topic) => matchesFilter(filter, topic),
  };
}
