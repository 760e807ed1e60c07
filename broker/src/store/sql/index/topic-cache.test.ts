import { expect, it } from "vitest";
import { parseGroupId } from "../../../domain/group-id.ts";
import { parseTopicName, type TopicName } from "../../../domain/topic-name.ts";
import { topicOf } from "../../../ports/store-examples.contract.ts";
import type { KeyedTopic } from "../rows.ts";
import { TopicCache } from "./topic-cache.ts";

const [group, other] = [parseGroupId("1"), parseGroupId("2")];
const [a, b, c] = [parseTopicName("a"), parseTopicName("b"), parseTopicName("c")];
const keyed = (name: TopicName, eventCount = 0): KeyedTopic => ({
  topic: topicOf(name, name.charCodeAt(0)),
  topicId: 1,
  digest: "00000000",
  ordinal: 1,
  eventCount,
});

it("keeps the topics that were written last, and finds them by name and address only in their group", () => {
  const cache = new TopicCache(2);
  cache.set(group, keyed(a));
  cache.set(group, keyed(b));
  cache.set(group, keyed(a, 5));
  cache.set(group, keyed(c));
  expect(cache.find(group, a)).toEqual(keyed(a, 5));
  expect(cache.find(group, b)).toBeUndefined();
  expect(cache.find(group, c)).toEqual(keyed(c));
  expect(cache.find(other, c)).toBeUndefined();
  expect(cache.findByAddress(group, keyed(a).topic.address)).toEqual(keyed(a, 5));
  expect(cache.findByAddress(group, keyed(b).topic.address)).toBeUndefined();
  expect(cache.findByAddress(other, keyed(c).topic.address)).toBeUndefined();
});

it("bounds the total number of topics over any number of groups", () => {
  const cache = new TopicCache(2);
  cache.set(group, keyed(a));
  cache.set(group, keyed(b));
  cache.set(other, keyed(a));
  cache.set(other, keyed(b));
  cache.set(other, keyed(c));
  const found = [group, other].flatMap((id) => [a, b, c].map((name) => cache.find(id, name)));
  expect(found.filter((record) => record !== undefined)).toHaveLength(2);
});
