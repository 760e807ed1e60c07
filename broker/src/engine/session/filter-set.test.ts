import { expect, it } from "vitest";
import { toPassingEvent } from "../../domain/event.ts";
import { positionZero } from "../../domain/position.ts";
import { parseSubscriptionId } from "../../domain/subscription.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { FilterSet } from "./filter-set.ts";

const asked = { qos: 0, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
const id = parseSubscriptionId("1b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11");
const event = toPassingEvent(parseTopicName("a/b"), { content: new Uint8Array([1]), extensions: [] });

function filterSetOf(...texts: readonly string[]): FilterSet {
  const filters = new FilterSet({ origin: "o", extensionPrefix: "svc-", protocol: "MQTT" });
  for (const text of texts) {
    filters.put({ filter: parseTopicFilter(text), id, startsAfter: positionZero, ...asked });
  }
  return filters;
}

it("returns the filters that match the topic of an event", () => {
  const wanting = filterSetOf("a/+", "a/b", "b").wanting(event);
  expect(wanting.map(({ filter }) => filter).toSorted()).toEqual(["a/+", "a/b"]);
});

it("returns the given filters that still exist, without matching the topic again", () => {
  const wanting = filterSetOf("a/+", "a/b", "b").wanting(event, [parseTopicFilter("a/b"), parseTopicFilter("gone")]);
  expect(wanting.map(({ filter }) => filter)).toEqual(["a/b"]);
});
