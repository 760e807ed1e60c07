import { maxUint256, zeroAddress } from "viem";
import { describe, expect, test } from "vitest";
import { topicAbi } from "./artifacts.generated.ts";
import { everyone } from "./constants.ts";
import { batchOf } from "./testing/batches.ts";
import { deployForeignProxy } from "./testing/foreign-proxy.ts";
import { bob, type GetFixture } from "./testing/registry-fixture.ts";

export function describeViews(get: GetFixture): void {
  describe("views", () => {
    test("return nothing before the first topic", async () => {
      expect(await get().topicCount()).toBe(0n);
      expect(await get().topics(0n, 10n)).toEqual([]);
      expect(await get().topicOf("orders")).toBe(zeroAddress);
      expect(await get().topicOf("")).toBe(zeroAddress);
      const unknown = { topic: zeroAddress, name: "", sender: zeroAddress, createdAt: 0n, sequence: 0n, lastBlock: 0n };
      expect(await get().stateOf(bob.address)).toEqual({ ...unknown, closed: false, writers: everyone });
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

    test("agree with the views of the topic contract", async () => {
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
        writers: await client.readContract({ ...topic, functionName: "writers" }),
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
    test("has an empty state behind a proxy that the registry did not create", async () => {
      const { proxy, implementation } = await deployForeignProxy(get());
      for (const address of [proxy, implementation]) {
        const state = await get().client.readContract({ address, abi: topicAbi, functionName: "state" });
        expect(state).toMatchObject({ topic: zeroAddress, name: "", sequence: 0n });
      }
    });

    test("has the CREATE2 address of its registry and the hash of its name", async () => {
      expect(await get().openTopic("orders")).toBe(get().addressOf("orders"));
    });
  });
}
