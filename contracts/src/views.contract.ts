import { type Address, maxUint256, zeroAddress, zeroHash } from "viem";
import { describe, expect, test } from "vitest";
import { topicAbi } from "./artifacts.generated.ts";
import { batchOf } from "./testing/batches.ts";
import { deployForeignProxy } from "./testing/foreign-proxy.ts";
import { alice, bob, type GetFixture, type RegistryFixture, revertOf } from "./testing/registry-fixture.ts";

export function describeViews(get: GetFixture): void {
  describe("views", () => {
    test("know nothing before the first topic", async () => {
      expect(await get().topicCount()).toBe(0n);
      expect(await get().topics(0n, 10n)).toEqual([]);
      expect(await get().topicOf("orders")).toBe(zeroAddress);
      expect(await get().topicOf("")).toBe(zeroAddress);
      const unknown = { topic: zeroAddress, name: "", sender: zeroAddress, createdAt: 0n, sequence: 0n, lastBlock: 0n };
      expect(await get().stateOf(bob.address)).toEqual({ ...unknown, closed: false });
    });

    test("page through the topics in the order of their creation", async () => {
      const names = ["e", "a", "d", "b", "c"];
      for (const name of names) await get().open(name);
      await get().close("a");
      await get().open("a");
      const namesOf = async (offset: bigint, limit: bigint) =>
        (await get().topics(offset, limit)).map((topic) => topic.name);
      expect(await get().topicCount()).toBe(5n);
      expect(await namesOf(0n, 2n)).toEqual(["e", "a"]);
      expect(await namesOf(2n, 2n)).toEqual(["d", "b"]);
      expect(await namesOf(4n, 2n)).toEqual(["c"]);
      expect(await namesOf(5n, 2n)).toEqual([]);
      expect(await namesOf(1n, 0n)).toEqual([]);
      expect(await namesOf(1n, maxUint256)).toEqual(["a", "d", "b", "c"]);
      expect(await namesOf(maxUint256, maxUint256)).toEqual([]);
    });

    test("agree with the views of the topic", async () => {
      const address = await get().openTopic("orders", bob);
      await get().publish([batchOf(address, 4)]);
      await get().close("orders");
      const topic = { address, abi: topicAbi } as const;
      const { client, registry } = get();
      const state = {
        topic: address,
        name: await client.readContract({ ...topic, functionName: "name" }),
        sender: await client.readContract({ ...topic, functionName: "sender" }),
        createdAt: await client.readContract({ ...topic, functionName: "createdAt" }),
        sequence: await client.readContract({ ...topic, functionName: "sequence" }),
        lastBlock: await client.readContract({ ...topic, functionName: "lastBlock" }),
        closed: await client.readContract({ ...topic, functionName: "closed" }),
      };
      expect(state).toMatchObject({ name: "orders", sender: bob.address, sequence: 4n, closed: true });
      expect(await get().stateOf(address)).toEqual(state);
      expect(await get().topics(0n, 1n)).toEqual([state]);
      expect(await client.readContract({ ...topic, functionName: "state" })).toEqual(state);
      expect(await client.readContract({ ...topic, functionName: "registry" })).toBe(registry);
    });
  });
}

export function describeTopic(get: GetFixture): void {
  describe("topic", () => {
    test("obeys the registry only", async () => {
      const address = await get().openTopic("orders");
      const topic = { address, abi: topicAbi, account: alice } as const;
      const { client } = get();
      const args = [alice.address, 1, zeroHash, "0xc0"] as const;
      await expectNotRegistry(client.simulateContract({ ...topic, functionName: "append", args }));
      await expectNotRegistry(client.simulateContract({ ...topic, functionName: "close" }));
      await get().close("orders");
      await expectNotRegistry(client.simulateContract({ ...topic, functionName: "reopen" }));
    });

    test("refuses to be initialized again, as proxy and as implementation", async () => {
      const { implementation } = await deployForeignProxy(get());
      await expectNotInitialized(get(), await get().topicOf("template"));
      await expectNotInitialized(get(), implementation);
    });

    test("obeys the registry only when someone else deploys a proxy", async () => {
      const { proxy } = await deployForeignProxy(get());
      await expectNotInitialized(get(), proxy);
      const close = get().client.simulateContract({ address: proxy, abi: topicAbi, functionName: "close" });
      await expectNotRegistry(close);
    });
  });
}

async function expectNotRegistry(call: Promise<unknown>): Promise<void> {
  expect(await revertOf(call)).toEqual({ name: "NotRegistry", args: [] });
}

async function expectNotInitialized(fixture: RegistryFixture, address: Address): Promise<void> {
  const call = { address, abi: topicAbi, functionName: "initialize", args: ["mine", alice.address] } as const;
  await expectNotRegistry(fixture.client.simulateContract(call));
}
