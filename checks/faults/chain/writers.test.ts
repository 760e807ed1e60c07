import { topicRegistryAbi } from "@stele/contracts";
import { createPublicClient, encodeFunctionData, getAbiItem, type Hex, http } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { expect, it } from "vitest";
import { devKey, startAnvil } from "../../harness/anvil.ts";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { groupsEnv } from "../../harness/group.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { placeOf } from "../support/replay.ts";
import { addressOf, batchOf, listSkipped, registry, Stranger } from "../support/stranger.ts";

const topic = "own/orders";

/** Numbers of the registry's writer sets, in order of creation. */
async function listSets(url: string): Promise<readonly unknown[]> {
  const chain = createPublicClient({ transport: http(url) });
  const event = getAbiItem({ abi: topicRegistryAbi, name: "WritersCreated" });
  const logs = await chain.getLogs({ address: registry, event, fromBlock: 0n });
  return logs.map(({ args }) => args.writers);
}

async function writersOf(url: string, name: string): Promise<number> {
  const chain = createPublicClient({ transport: http(url) });
  const contract = { abi: topicRegistryAbi, address: registry } as const;
  return (await chain.readContract({ ...contract, functionName: "stateOf", args: [addressOf(name)] })).writers;
}

function changeOf(functionName: "close" | "open"): Hex {
  return functionName === "close"
    ? encodeFunctionData({ abi: topicRegistryAbi, functionName, args: [topic] })
    : encodeFunctionData({ abi: topicRegistryAbi, functionName, args: [[topic], 1] });
}

it("with topicWriters own, a stranger's batch on the broker's topic has no effect, even after a restart", async () => {
  await using anvil = await startAnvil();
  using folder = createTempFolder();
  await using receiver = await startReceiver();
  const group = { id: "1", endpoints: [anvil.url], privateKey: devKey(0), pollMs: 50, topicWriters: "own" } as const;
  const options = { dataDir: folder.path, env: groupsEnv([group]) };
  const stranger = new Stranger(anvil.url);
  const contents: string[] = [];

  async function publishBeside(broker: BrokerProcess): Promise<void> {
    await using client = new Client(broker.url);
    await until("the broker is ready", () => client.isReady());
    if (contents.length === 0) {
      await client.open(topic);
      await client.subscribe({ topic: "#", url: receiver.url });
    }
    for (let round = 0; round < 5; round += 1) {
      await stranger.publish(batchOf(topic, ["a stranger's"]));
      contents.push(`ours ${contents.length}`);
      const { eventId } = await client.publish(topic, contents.at(-1) ?? "");
      expect(placeOf(eventId).sequence).toBe(contents.length);
    }
    for (const change of ["close", "open"] as const) {
      await expect(stranger.send({ to: registry, data: changeOf(change) })).rejects.toThrow("revert");
    }
    expect(await listSkipped(client)).toEqual([]);
    expect(await client.listGroupFailures()).toEqual([undefined]);
    await receiver.waitForCount(contents.length);
    const delivered = receiver.accepted().map(({ content }) => Buffer.from(content, "base64").toString());
    expect(delivered).toEqual(contents);
    expect(await listSets(anvil.url)).toEqual([1]);
  }

  {
    await using broker = await startBroker(options);
    await publishBeside(broker);
    expect((await broker.stop()).code).toBe(0);
  }
  await using broker = await startBroker(options);
  await publishBeside(broker);
  await using client = new Client(broker.url);
  await client.open("own/later");
  expect([await writersOf(anvil.url, topic), await writersOf(anvil.url, "own/later")]).toEqual([1, 1]);
  expect(await listSets(anvil.url)).toEqual([1]);
});

it("after its signer is replaced, a broker warns in health and refuses to open topics and publish until a writer adds the new signer", async () => {
  await using anvil = await startAnvil();
  using folder = createTempFolder();
  const operator = devKey(5);
  const group = { id: "1", endpoints: [anvil.url], pollMs: 50, topicWriters: "own" } as const;
  const writers = [privateKeyToAddress(operator)];
  {
    const env = groupsEnv([{ ...group, privateKey: devKey(0), writers }]);
    await using broker = await startBroker({ dataDir: folder.path, env });
    await using client = new Client(broker.url);
    await until("the broker is ready", () => client.isReady());
    await client.open(topic);
    expect((await broker.stop()).code).toBe(0);
  }
  const env = groupsEnv([{ ...group, privateKey: devKey(1) }]);
  await using broker = await startBroker({ dataDir: folder.path, env });
  await using client = new Client(broker.url);
  await until("the broker is ready", () => client.isReady());
  const reason = `the signer ${privateKeyToAddress(devKey(1)).toLowerCase()} may not write to this group's topics yet`;
  const readHealth = async (): Promise<string> =>
    (await client.http.send({ method: "GET", path: "/health/ready" })).text;
  await until("health warns", async () => (await readHealth()).includes(reason));
  await expect(client.open("own/new")).rejects.toThrow(`100113`);
  await expect(client.open("own/new")).rejects.toThrow(reason);
  await expect(client.publish(topic, "refused")).rejects.toThrow("100113");

  const args = [1, privateKeyToAddress(devKey(1)), true] as const;
  const stranger = new Stranger(anvil.url); // Its key is the operator's.
  const data = encodeFunctionData({ abi: topicRegistryAbi, functionName: "setWriter", args });
  await stranger.untilMined(await stranger.send({ to: registry, data }));
  await until("the warning is gone", async () => !(await readHealth()).includes(reason));
  await client.open("own/new");
  expect((await client.publish(topic, "taken")).status).toBe("SUCCESS");
});
