import { expect, it } from "vitest";
import { parseGroupId } from "../../domain/group-id.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import { topicOf } from "../../ports/store-examples.contract.ts";
import type { KeyedTopic } from "./rows.ts";
import { TopicCache } from "./topic-cache.ts";

const [group, other] = [parseGroupId("1"), parseGroupId("2")];
const [a, b, c] = [parseTopicName("a"), parseTopicName("b"), parseTopicName("c")];
const keyed = (name: TopicName, eventCount = 0): KeyedTopic => ({
  topic: topicOf(name),
  topicId: 1,
  ordinal: 1,
  eventCount,
});

it("keeps the topics that were last written, per group", () => {
  const cache = new TopicCache(2);
  cache.set(group, keyed(a));
  cache.set(group, keyed(b));
  cache.set(group, keyed(a, 5));
  cache.set(group, keyed(c));
  expect(cache.find(group, a)).toEqual(keyed(a, 5));
  expect(cache.find(group, b)).toBeUndefined();
  expect(cache.find(group, c)).toEqual(keyed(c));
  expect(cache.find(other, c)).toBeUndefined();
});
