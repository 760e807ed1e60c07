import { getContractAddress } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { devKey, startAnvil } from "../../harness/anvil.ts";
import { startBroker } from "../../harness/broker-process.ts";
import { Client, take } from "../../harness/client.ts";
import { type Api, apiOver } from "../../harness/apis.ts";
import { groupsEnv } from "../../harness/group.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { ChainProxy } from "../support/chain-proxy.ts";
import { PublishLoad } from "../support/publish-load.ts";
import { expectFound, expectGaplessSequences, placeOf, replayAll } from "../support/replay.ts";

const topics = ["s/a", "s/b"];
const blockTimeS = 0.5;
const quick = { pollMs: 100 };
const eventsPerBroker = 200;
const env = { STELE_LOG_LEVEL: "warn" };

describe("two brokers with different keys on one registry", () => {
  it("two brokers number each topic's events 1 to n together, with unique ids, and deliver the same order to all subscribers", async () => {
    await using anvil = await startAnvil({ blockTimeS });
    const registry = getContractAddress({ from: privateKeyToAddress(devKey(0)), nonce: 0n }).toLowerCase();
    using folders = createTempFolder();
    const start = (index: number) => {
      // The first broker deploys the registry. Its key and nonce 0 determine the address.
      const known = index === 0 ? {} : { registry };
      const groups = groupsEnv([{ id: "1", endpoints: [anvil.url], privateKey: devKey(index), ...known, ...quick }]);
      return startBroker({ dataDir: `${folders.path}/${index}`, env: { ...env, ...groups } });
    };
    await using first = await start(0);
    await using client = new Client(first.url);
    await until("the first broker is ready", () => client.isReady());
    await using second = await start(1);
    await using client2 = new Client(second.url);
    await until("the second broker is ready", () => client2.isReady());
    for (const topic of topics) await client.open(topic);
    await until("the second broker knows the topics", async () => (await client2.list()).total === topics.length);
    await using receiver = await startReceiver();
    await using receiver2 = await startReceiver();
    await client.subscribe({ topic: "s/+", url: receiver.url });
    await client2.subscribe({ topic: "s/+", url: receiver2.url });

    const loads = [first, second].map((broker, index) => {
      const load = new PublishLoad(topics, { publishersPerTopic: 8, label: `broker ${index}` });
      load.start(broker.url);
      return load;
    });
    const isEnough = (): boolean => loads.every(({ acknowledged }) => acknowledged.size >= eventsPerBroker);
    await until("both brokers have published enough", isEnough, { timeoutMs: 60_000 });
    for (const load of loads) await load.stop();
    for (const load of loads) expect(load.refusals).toEqual([]);

    const count = loads.reduce((sum, { acknowledged }) => sum + acknowledged.size, 0);
    for (const one of [client, client2]) {
      await until("all events are indexed", async () => (await totalOf(one)) === count);
      await expectGaplessSequences(one, await replayAll(one));
      for (const { acknowledged } of loads) await expectFound(one, acknowledged.values());
    }
    const ids = (await replayAll(client)).map(({ eventId }) => eventId);
    expect((await replayAll(client2)).map(({ eventId }) => eventId)).toEqual(ids);
    const acknowledged = loads.flatMap((load) => [...load.acknowledged.keys()]);
    expect(acknowledged.toSorted()).toEqual(ids.toSorted());
    for (const one of [receiver, receiver2]) {
      expect((await one.waitForCount(count)).map(({ eventId }) => eventId)).toEqual(ids);
    }
  });
});

describe("two groups of one broker", () => {
  it("two groups have separate topics, sequences, events and subscriptions", async () => {
    await using chainA = await startAnvil({});
    await using chainB = await startAnvil({});
    using folder = createTempFolder();
    await using receiver = await startReceiver();
    const groups = groupsEnv([
      { id: "1", endpoints: [chainA.url], privateKey: devKey(0), ...quick },
      { id: "west", endpoints: [chainB.url], privateKey: devKey(0), ...quick },
    ]);
    await using broker = await startBroker({ dataDir: folder.path, env: { ...env, ...groups } });
    await using client = new Client(broker.url);
    await until("both groups are ready", () => client.isReady());
    const api = apiOver(client.http, "JSON-RPC");
    await client.open("both");
    await client.open("only in 1");
    expect(take("exist", await api.call("exist", { topic: "both", groupId: "west" }))).toBe(false);
    expect(await publish(api, { topic: "both", groupId: "west" })).toMatchObject({ code: 100_101 });
    take("open", await api.call("open", { topic: "both", groupId: "west" }));
    take("subscribe", await api.call("subscribe", { topic: "#", groupId: "west", url: receiver.url }));
    for (let index = 1; index <= 3; index += 1) {
      const sent = await client.publish("both", `in 1, ${index}`);
      expect(placeOf(sent.eventId).sequence).toBe(index);
    }
    const west = take("publish", await publish(api, { topic: "both", groupId: "west" }));
    expect(placeOf(west.eventId).sequence).toBe(1);
    const [delivered] = await receiver.waitForCount(1);
    expect(delivered?.eventId).toBe(west.eventId);
    expect((await client.list()).topicInfoList.map(({ topicName }) => topicName)).toEqual(["both", "only in 1"]);
    const { topicInfoList } = take("list", await api.call("list", { groupId: "west" }));
    expect(topicInfoList.map(({ topicName }) => topicName)).toEqual(["both"]);
    expect((await client.state("both")).sequenceNumber).toBe(3);
    expect(take("state", await api.call("state", { topic: "both", groupId: "west" })).sequenceNumber).toBe(1);
    expect(await api.call("getEvent", { eventId: west.eventId, groupId: "1" })).toMatchObject({ isGood: false });
    expect(receiver.attempts).toHaveLength(1);
  });

  it("two groups start independently: one serves while the other's chain is unreachable, and the other starts once its chain is reachable", async () => {
    await using chainA = await startAnvil({});
    await using chainB = await startAnvil({});
    await using proxy = await ChainProxy.start(chainB.url);
    await proxy.refuse();
    using folder = createTempFolder();
    const groups = groupsEnv([
      { id: "1", endpoints: [chainA.url], privateKey: devKey(0), ...quick },
      { id: "west", endpoints: [proxy.url], privateKey: devKey(0), ...quick },
    ]);
    await using broker = await startBroker({ dataDir: folder.path, env: { ...env, ...groups } });
    await using client = new Client(broker.url);
    const api = apiOver(client.http, "JSON-RPC");
    await until("the first group serves", async () => (await api.call("open", { topic: "a" })).isGood);
    expect((await client.publish("a", "x")).status).toBe("SUCCESS");
    expect(await api.call("open", { topic: "a", groupId: "west" })).toMatchObject({ code: 200_205 });
    const health = await client.http.send({ method: "GET", path: "/health/ready" });
    expect(health.status).toBe(200);
    expect(health.json()).toMatchObject({
      status: "partly ready",
      groups: [
        { groupId: "1", ready: true },
        { groupId: "west", ready: false, reason: expect.any(String) },
      ],
    });
    await proxy.listen();
    await until("both groups are ready", () => client.isReady(), { timeoutMs: 60_000 });
    take("open", await api.call("open", { topic: "a", groupId: "west" }));
    expect(take("publish", await publish(api, { topic: "a", groupId: "west" })).status).toBe("SUCCESS");
  });
});

function publish(api: Api, place: { readonly topic: string; readonly groupId: string }) {
  return api.call("publish", { ...place, content: "x" });
}

async function totalOf(client: Client): Promise<number> {
  let total = 0;
  for (const topic of topics) total += (await client.state(topic)).sequenceNumber;
  return total;
}
