import type { TopicSource } from "../topic-set.ts";

/** A registry without topics. */
export const noTopics: TopicSource = {
  isTopic: async () => false,
  listTopics: async function* () {},
};
