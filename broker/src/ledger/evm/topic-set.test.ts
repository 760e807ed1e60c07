import { expect, test } from "vitest";
import type { Address } from "../../domain/topic.ts";
import { TopicSet } from "./topic-set.ts";

const block = { number: 7, hash: `0x${"07".repeat(32)}` } as const;

/** Topics have even numbers. */
const addressOf = (number: number): Address => `0x${number.toString(16).padStart(40, "0")}`;
const addresses = (from: number, count: number): ReadonlySet<Address> =>
  new Set(Array.from({ length: count }, (_, index) => addressOf(from + index)));
const isTopic = (address: Address): boolean => Number(address) % 2 === 0;

function createSet(topicCount: number): { readonly topics: TopicSet; readonly requests: string[] } {
  const requests: string[] = [];
  const topics = new TopicSet({
    isTopic: async (address) => {
      requests.push("ask");
      return isTopic(address);
    },
    listTopics: async function* () {
      for (let first = 0; first < topicCount; first += 100) {
        requests.push("list");
        yield Array.from({ length: 100 }, (_, index) => addressOf(2 * (first + index)));
      }
    },
  });
  return { topics, requests };
}

test("few unknown contracts are asked about, once each", async () => {
  const { topics, requests } = createSet(100);
  expect(await topics.among(addresses(0, 10), block)).toEqual(new Set([...addresses(0, 10)].filter(isTopic)));
  await topics.among(addresses(0, 10), block);
  expect(requests).toEqual(Array.from({ length: 10 }, () => "ask"));
});

test("of 4,000 unknown contracts one reading of the registry's list tells the topics", async () => {
  const { topics, requests } = createSet(4_000);
  const some = addresses(0, 4_000);
  expect(await topics.among(some, block)).toEqual(new Set([...some].filter(isTopic)));
  expect(requests).toHaveLength(40);
  expect((await topics.among(some, block)).size).toBe(2_000);
  expect(requests).toHaveLength(40);
});

test("a topic stays one when a stranger opens more topics than are kept", async () => {
  const { topics } = createSet(70_000);
  topics.add(addressOf(0));
  const some = new Set([addressOf(0), ...addresses(139_001, 100)]);
  expect(await topics.among(some, block)).toEqual(new Set([...some].filter(isTopic)));
  expect(await topics.among(new Set([addressOf(0)]), block)).toEqual(new Set([addressOf(0)]));
});
