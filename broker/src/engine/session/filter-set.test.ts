import { afterEach, expect, it } from "vitest";
import { toPassingEvent } from "../../domain/event.ts";
import { positionZero } from "../../domain/position.ts";
import { parseSubscriptionId, type SubscriptionId } from "../../domain/subscription.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { FilterSet } from "./filter-set.ts";

const asked = { qos: 0, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
const id = parseSubscriptionId("1b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11");
const owners = new Map<SubscriptionId, string>();
afterEach(() => owners.clear());
const event = toPassingEvent(parseTopicName("a/b"), { content: new Uint8Array([1]), extensions: [] });

function filterSetOf(...texts: readonly string[]): FilterSet {
  const filters = new FilterSet({ origin: "o", extensionPrefix: "svc-", protocol: "MQTT", owners });
  for (const text of texts) put(filters, text);
  return filters;
}

function put(filters: FilterSet, text: string, own = id): void {
  filters.put({ filter: parseTopicFilter(text), id: own, startsAfter: positionZero, ...asked });
}

it("returns the filters that match the topic of an event", () => {
  const wanting = filterSetOf("a/+", "a/b", "b").wanting(event);
  expect(wanting.map(({ filter }) => filter).toSorted()).toEqual(["a/+", "a/b"]);
});

it("returns the given filters that still exist, without matching the topic again", () => {
  const wanting = filterSetOf("a/+", "a/b", "b").wanting(event, [parseTopicFilter("a/b"), parseTopicFilter("gone")]);
  expect(wanting.map(({ filter }) => filter)).toEqual(["a/b"]);
});

it("lists the identifiers of its current filters at its node, from the call of list to that of unlist", () => {
  const others = ["2b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11", "3b3a1f5e-7c5d-4d0e-9f61-3f8f7b0f2a11"];
  const [second, third] = others.map(parseSubscriptionId) as [SubscriptionId, SubscriptionId];
  const filters = filterSetOf("a");
  expect([...owners]).toEqual([]);
  filters.list();
  expect([...owners]).toEqual([[id, "o"]]);
  put(filters, "a", second);
  put(filters, "b", third);
  expect([...owners.keys()]).toEqual([second, third]);
  filters.remove(parseTopicFilter("a"));
  expect([...owners.keys()]).toEqual([third]);
  filters.unlist();
  put(filters, "c", second);
  expect([...owners]).toEqual([]);
});
