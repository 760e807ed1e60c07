import { describe, expect, it } from "vitest";
import { type Client, codeOf, take } from "../../harness/client.ts";
import { apiNames, apiOver } from "../../harness/apis.ts";
import { useReceivers } from "../../harness/use.ts";
import type { RunningWorld, World } from "../../harness/world.ts";

/** Pages of list, and the effect of close (INTERFACE.md, TopicPage, Limits, States). */
export function describeTopics(world: World, running: () => RunningWorld): void {
  // This block runs first, while the broker has no topics.
  describe(`list on the ${world.name}`, () => {
    const names = Array.from({ length: 23 }, (_, index) => `topic ${index}`);

    it("a broker without topics returns an empty page", async () => {
      expect(await running().client.list(0, 5)).toEqual({ total: 0, pageIndex: 0, pageSize: 5, topicInfoList: [] });
    });

    it("pages contain every topic once, in the order of opening", async () => {
      const { client } = running();
      for (const name of names) await client.open(name);
      const seen: string[] = [];
      for (const pageIndex of [0, 1, 2, 3, 4]) {
        const page = await client.list(pageIndex, 5);
        expect(page).toMatchObject({ total: 23, pageIndex, pageSize: 5 });
        seen.push(...page.topicInfoList.map(({ topicName }) => topicName));
      }
      expect(seen).toEqual(names);
    });

    it("a page beyond the last is empty, with the true total", async () => {
      const page = { total: 23, pageIndex: 5, pageSize: 5, topicInfoList: [] };
      expect(await running().client.list(5, 5)).toEqual(page);
      expect(await running().client.list(1_000_000, 5)).toEqual({ ...page, pageIndex: 1_000_000 });
    });

    const sizes = [0, -1, 100, 101, 1_000_000, 1e16, 1e20, -1e20];
    it.each(apiNames.flatMap((api) => sizes.map((size) => [api, size] as const)))(
      "%s: pageSize %d is outside (0,100) and becomes 10 (INTERFACE.md, Limits)",
      async (apiName, pageSize) => {
        const api = apiOver(running().client.http, apiName);
        const page = take("list", await api.call("list", { pageIndex: 0, pageSize }));
        expect(page).toMatchObject({ total: 23, pageSize: 10 });
        expect(page.topicInfoList).toHaveLength(10);
      },
    );

    it.each(apiNames)("%s: the largest pageIndex is a page beyond the last", async (apiName) => {
      const pageIndex = Number.MAX_SAFE_INTEGER;
      const page = await apiOver(running().client.http, apiName).call("list", { pageIndex, pageSize: 99 });
      expect(take("list", page)).toEqual({ total: 23, pageIndex, pageSize: 99, topicInfoList: [] });
    });

    it.each([1, 99])("pageSize %d is within (0,100) and is used", async (pageSize) => {
      const page = await running().client.list(0, pageSize);
      expect(page.pageSize).toBe(pageSize);
      expect(page.topicInfoList).toHaveLength(Math.min(23, pageSize));
    });

    it("list without pageIndex and pageSize returns the first 10 topics", async () => {
      for (const name of apiNames) {
        const api = apiOver(running().client.http, name);
        expect(take("list", await api.call("list"))).toMatchObject({ pageIndex: 0, pageSize: 10, total: 23 });
      }
    });
  });

  describe(`close on the ${world.name}`, () => {
    const receive = useReceivers();
    const test = world.isSlow ? it.concurrent : it;

    test("a closed topic still exists: exist, state, list and getEvent work as before", async () => {
      const { client } = running();
      const eventId = await openWithEvent(client, "closed/1");
      const state = await client.state("closed/1");
      const event = await client.getEvent(eventId);
      await client.close("closed/1");
      expect(await client.exist("closed/1")).toBe(true);
      expect(await client.state("closed/1")).toEqual(state);
      expect(await client.getEvent(eventId)).toEqual(event);
      expect((await client.list(0, 99)).topicInfoList.map(({ topicName }) => topicName)).toContain("closed/1");
    });

    test("publish to a closed topic returns 100112 and changes nothing", async () => {
      const { client } = running();
      await openWithEvent(client, "closed/2");
      await client.close("closed/2");
      expect(await codeOf(client.publish("closed/2", "after"))).toBe(100112);
      expect((await client.state("closed/2")).sequenceNumber).toBe(1);
    });

    test("a subscription to a closed topic with OFFSET_FIRST receives its events", async () => {
      const { client } = running();
      const receiver = await receive();
      const eventId = await openWithEvent(client, "closed/3");
      await client.close("closed/3");
      await client.subscribe({ topic: "closed/3", url: receiver.url, offset: "OFFSET_FIRST" });
      expect((await receiver.waitForCount(1))[0]?.eventId).toBe(eventId);
    });

    test("opening a closed topic again keeps its history, and its subscriptions continue", async () => {
      const { client } = running();
      const receiver = await receive();
      const eventId = await openWithEvent(client, "closed/4");
      await client.subscribe({ topic: "closed/4", url: receiver.url });
      const info = await client.state("closed/4");
      await client.close("closed/4");
      expect(await client.open("closed/4")).toBe(true);
      const sent = await client.publish("closed/4", "after");
      expect(sent.eventId).toMatch(/-2-\d+$/);
      expect(await client.getEvent(eventId)).toMatchObject({ topic: "closed/4" });
      expect((await receiver.waitForCount(1))[0]?.eventId).toBe(sent.eventId);
      expect(await client.state("closed/4")).toMatchObject({
        topicAddress: info.topicAddress,
        createdTimestamp: info.createdTimestamp,
        sequenceNumber: 2,
      });
    });

    test("closing a topic that never existed returns 100101", async () => {
      expect(await codeOf(running().client.close("never"))).toBe(100101);
    });
  });
}

async function openWithEvent(client: Client, topic: string): Promise<string> {
  await client.open(topic);
  return (await client.publish(topic, "before")).eventId;
}
