import { describe, expect, it } from "vitest";
import type { ListingEntry } from "../../harness/client.ts";
import { untilHolds } from "../../harness/until.ts";
import { useReceivers } from "../../harness/use.ts";
import type { RunningWorld, World } from "../../harness/world.ts";

const topics = ["a", "a/b", "a/b/c", "a/x/c", "a//c", "/a", "b", "A", "ab", "$SYS", "$SYS/a", "a b/c d", "$SYS/a/c"];

/** Each filter, with those of the topics above that it matches by MQTT 5.0, section 4.7. */
const filters: readonly (readonly [string, readonly string[]])[] = [
  ["a", ["a"]],
  ["a/#", ["a", "a/b", "a/b/c", "a/x/c", "a//c"]],
  ["#", ["a", "a/b", "a/b/c", "a/x/c", "a//c", "/a", "b", "A", "ab", "a b/c d"]],
  ["+", ["a", "b", "A", "ab"]],
  ["+/+", ["a/b", "/a", "a b/c d"]],
  ["/+", ["/a"]],
  ["a/+", ["a/b"]],
  ["a/+/c", ["a/b/c", "a/x/c", "a//c"]],
  ["+/b/#", ["a/b", "a/b/c"]],
  ["+/#", ["a", "a/b", "a/b/c", "a/x/c", "a//c", "/a", "b", "A", "ab", "a b/c d"]],
  ["a/b/c/#", ["a/b/c"]],
  ["a/+/#", ["a/b", "a/b/c", "a/x/c", "a//c"]],
  ["$SYS/#", ["$SYS", "$SYS/a", "$SYS/a/c"]],
  ["$SYS/+", ["$SYS/a"]],
  ["+/a", ["/a"]],
  ["a b/+", ["a b/c d"]],
];

/** A topic that is opened after the events of all others, and the filters that match it. */
const lastTopic = "zz/last";
const filtersOfLast = ["#", "+/+", "+/#"];

/** Wildcards, tested by subscribing and publishing (INTERFACE.md, Topic name: the MQTT convention). */
export function describeWildcards(world: World, running: () => RunningWorld): void {
  describe(`wildcards on the ${world.name}`, () => {
    const receive = useReceivers();
    // In a cluster, a call may reach a node that has not indexed the newest event yet.
    const checkListing = world.isCluster === true ? untilHolds : (check: () => Promise<void>) => check();

    it("each filter receives the events of exactly the topics that it matches, even of topics that are opened later", async () => {
      const { client } = running();
      const subscribed = [];
      await client.open("a");
      for (const [filter, expected] of filters) {
        const receiver = await receive();
        const id = await client.subscribe({ topic: filter, url: receiver.url });
        subscribed.push({ id, filter, expected, receiver });
      }
      await Promise.all(topics.map((topic) => client.open(topic)));
      for (const topic of topics) await client.publish(topic, topic);
      for (const { filter, expected, receiver } of subscribed) {
        const events = await receiver.waitForCount(expected.length);
        // Each topic has one event, published in the order of `topics`. The counts below show that no other event matched.
        expect([filter, events.map(({ topic }) => topic)]).toEqual([
          filter,
          topics.filter((topic) => expected.includes(topic)),
        ]);
      }
      await client.open(lastTopic);
      await client.publish(lastTopic, "x");
      const counts = subscribed.map(({ id, filter, expected }) => [
        id,
        filter,
        expected.length + (filtersOfLast.includes(filter) ? 1 : 0),
      ]);
      await checkListing(async () => {
        const entries = Object.values(await client.listSubscriptions()).flatMap((node) => Object.entries(node));
        const found = new Map(entries);
        expect(found.size).toBe(entries.length);
        expect(counts.map(([id]) => listedAs(String(id), found.get(String(id))))).toEqual(counts);
      });
    });

    it("one event is delivered once per matching subscription", async () => {
      const { client } = running();
      const receivers = [await receive(), await receive(), await receive()];
      await client.open("m/n");
      for (const [index, filter] of ["m/#", "m/+", "m/n"].entries()) {
        await client.subscribe({ topic: filter, url: receivers[index]?.url ?? "" });
      }
      const first = await client.publish("m/n", "1");
      const second = await client.publish("m/n", "2");
      for (const receiver of receivers) {
        const events = await receiver.waitForCount(2);
        expect(events.map(({ eventId }) => eventId)).toEqual([first.eventId, second.eventId]);
      }
    });
  });
}

function listedAs(id: string, entry: ListingEntry | undefined): readonly unknown[] {
  return [id, entry?.topicName, Number(entry?.notifiedEventCount) + Number(entry?.notifyingEventCount)];
}
