import { isPattern, matchesFilter, type TopicFilter } from "./topic-filter.ts";
import { parseTopicName, type TopicName } from "./topic-name.ts";

/** The topics whose events some subscription wants. */
export interface Interest {
  /** The one topic that they can be of; undefined where there may be several. */
  readonly only: TopicName | undefined;
  includes(topic: TopicName): boolean;
}

export function toInterest(filter: TopicFilter): Interest {
  return {
    only: isPattern(filter) ? undefined : parseTopicName(filter),
    includes: (topic) => matchesFilter(filter, topic),
  };
}
