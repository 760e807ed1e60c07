import { size, zeroAddress } from "viem";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { topicNameBytesMax } from "./constants.ts";
import { describePublish, describeRejections } from "./publish.contract.ts";
import { batchOf, published } from "./testing/batches.ts";
import { bob, decodeLogs, type GetFixture, RegistryFixture, revertOf } from "./testing/registry-fixture.ts";
import type { TestChain } from "./testing/test-chain.ts";
import { describeTopic, describeViews } from "./views.contract.ts";

/** The behaviours of sol/TopicRegistry.tree, on any chain. */
export function describeTopicRegistry(chainName: string, startChain: () => Promise<TestChain>): void {
  describe(`TopicRegistry on ${chainName}`, () => {
    let chain: TestChain;
    let fixture: RegistryFixture;

    beforeAll(async () => {
      chain = await startChain();
    });
    afterAll(() => chain.stop());
    beforeEach(async () => {
      fixture = await RegistryFixture.deploy(chain.transport);
    });

    describeOpen(() => fixture);
    describeClose(() => fixture);
    describePublish(() => fixture);
    describeRejections(() => fixture);
    describeViews(() => fixture);
    describeTopic(() => fixture);
  });
}

function describeOpen(get: GetFixture): void {
  describe("open", () => {
    test.each(["", "x".repeat(topicNameBytesMax + 1), "\u0080".repeat(topicNameBytesMax / 2 + 1)])(
      "refuses an empty name and one over 1,024 bytes",
      async (name) => {
        const { client, contract } = get();
        const call = client.simulateContract({ ...contract, functionName: "open", args: [name] });
        expect((await revertOf(call)).name).toBe("InvalidName");
      },
    );

    test("creates the topic with its name, sender and time", async () => {
      const { client, registry } = get();
      const receipt = await get().open("orders/eu", bob);
      const topic = await get().topicOf("orders/eu");
      const { timestamp } = await client.getBlock({ blockNumber: receipt.blockNumber });
      expect(decodeLogs(receipt)).toEqual([
        { address: registry, eventName: "TopicOpened", args: { topic, sender: bob.address, name: "orders/eu" } },
      ]);
      expect(await get().stateOf(topic)).toEqual({
        topic,
        name: "orders/eu",
        sender: bob.address,
        createdAt: timestamp,
        sequence: 0n,
        lastBlock: 0n,
        closed: false,
      });
      expect(size((await client.getCode({ address: topic })) ?? "0x")).toBe(45);
    });

    test("takes every character from U+0020 to U+0080", async () => {
      const name = String.fromCodePoint(...Array.from({ length: 0x80 - 0x20 + 1 }, (_, index) => 0x20 + index));
      const receipt = await get().open(name);
      const topic = await get().topicOf(name);
      expect(topic).not.toBe(zeroAddress);
      expect(decodeLogs(receipt)[0]?.args).toMatchObject({ topic, name });
      expect((await get().stateOf(topic)).name).toBe(name);
    });

    test.each(["x", "x".repeat(topicNameBytesMax), "\u0080".repeat(topicNameBytesMax / 2)])(
      "takes names of 1 and of 1,024 bytes",
      async (name) => {
        const topic = await get().openTopic(name);
        expect((await get().stateOf(topic)).name).toBe(name);
      },
    );

    test("leaves an open topic as it is", async () => {
      const topic = await get().openTopic("orders");
      await get().publish([batchOf(topic, 3)]);
      const before = await get().stateOf(topic);
      const receipt = await get().open("orders", bob);
      expect(receipt.logs).toEqual([]);
      expect(await get().stateOf(topic)).toEqual(before);
      expect(await get().topicCount()).toBe(1n);
    });

    test("reopens a closed topic with its history and sequence", async () => {
      const topic = await get().openTopic("orders");
      await get().publish([batchOf(topic, 3)]);
      const before = await get().stateOf(topic);
      await get().close("orders");
      const receipt = await get().open("orders", bob);
      expect(decodeLogs(receipt)).toEqual([
        { address: get().registry, eventName: "TopicReopened", args: { topic, sender: bob.address } },
      ]);
      expect(await get().stateOf(topic)).toEqual(before);
      expect(await get().topicCount()).toBe(1n);
      const next = batchOf(topic, 1);
      expect(decodeLogs(await get().publish([next]))).toEqual([published(next, 4n)]);
    });
  });
}

function describeClose(get: GetFixture): void {
  describe("close", () => {
    test("refuses a name that was never opened", async () => {
      const { client, contract } = get();
      const call = client.simulateContract({ ...contract, functionName: "close", args: ["nowhere"] });
      expect(await revertOf(call)).toEqual({ name: "TopicNotFound", args: ["nowhere"] });
    });

    test("closes an open topic, whoever asks", async () => {
      const topic = await get().openTopic("orders");
      const before = await get().stateOf(topic);
      const receipt = await get().close("orders", bob);
      expect(decodeLogs(receipt)).toEqual([
        { address: get().registry, eventName: "TopicClosed", args: { topic, sender: bob.address } },
      ]);
      expect(await get().stateOf(topic)).toEqual({ ...before, closed: true });
    });

    test("leaves a closed topic as it is", async () => {
      const topic = await get().openTopic("orders");
      await get().close("orders");
      const before = await get().stateOf(topic);
      const receipt = await get().close("orders");
      expect(receipt.logs).toEqual([]);
      expect(await get().stateOf(topic)).toEqual(before);
    });
  });
}
