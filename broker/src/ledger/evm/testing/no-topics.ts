import type { TopicSource } from "../topic-set.ts";

/** A registry without topics. */
export const noTopics: TopicSource = {
  ask: async () => false,
  list: async function* () {},
};
