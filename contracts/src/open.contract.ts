import { size, zeroAddress } from "viem";
import { describe, expect, test } from "vitest";
import { everyone, topicNameBytesMax } from "./constants.ts";
import { batchOf, published } from "./testing/batches.ts";
import { alice, bob, decodeLogs, type GetFixture, revertOf } from "./testing/registry-fixture.ts";

export function describeOpen(get: GetFixture): void {
  describe("open", () => {
    test.each(["", "x".repeat(topicNameBytesMax + 1), "\u0080".repeat(topicNameBytesMax / 2 + 1)])(
      "refuses an empty name and one over 1,024 bytes",
      async (name) => {
        const { client, contract } = get();
        const call = client.simulateContract({ ...contract, functionName: "open", args: [["fine", name], everyone] });
        expect((await revertOf(call)).name).toBe("InvalidName");
      },
    );

    test("creates the topic with its name, sender and time", async () => {
      const { client } = get();
      const receipt = await get().open("orders/eu", bob);
      const topic = await get().topicOf("orders/eu");
      const { timestamp } = await client.getBlock({ blockNumber: receipt.blockNumber });
      const args = { topic, sender: bob.address, writers: everyone, name: "orders/eu" };
      expect(decodeLogs(receipt)).toEqual([{ eventName: "TopicOpened", args }]);
      expect(await get().stateOf(topic)).toEqual({
        topic,
        name: "orders/eu",
        sender: bob.address,
        createdAt: timestamp,
        sequence: 0n,
        lastBlock: 0n,
        closed: false,
        writers: everyone,
      });
      expect(size((await client.getCode({ address: topic })) ?? "0x")).toBe(45);
    });

    test("opens many topics in one transaction, in the order of the argument", async () => {
      const names = Array.from({ length: 50 }, (_, index) => `sensors/${index}`);
      const receipt = await get().open([...names, "sensors/0"]);
      expect(decodeLogs(receipt).map(({ args }) => (args as { name: string }).name)).toEqual(names); // TopicOpened has a name.
      expect((await get().topics(0n, 99n)).map(({ name }) => name)).toEqual(names);
    });

    test("accepts every character from U+0020 to U+0080", async () => {
      const name = String.fromCodePoint(...Array.from({ length: 0x80 - 0x20 + 1 }, (_, index) => 0x20 + index));
      const receipt = await get().open(name);
      const topic = await get().topicOf(name);
      expect(topic).not.toBe(zeroAddress);
      expect(decodeLogs(receipt)[0]?.args).toMatchObject({ topic, name });
      expect((await get().stateOf(topic)).name).toBe(name);
    });

    test.each(["x", "x".repeat(topicNameBytesMax), "\u0080".repeat(topicNameBytesMax / 2)])(
      "accepts names of 1 and of 1,024 bytes",
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
      expect(decodeLogs(receipt)).toEqual([{ eventName: "TopicReopened", args: { topic, sender: bob.address } }]);
      expect(await get().stateOf(topic)).toEqual(before);
      expect(await get().topicCount()).toBe(1n);
      const next = batchOf(topic, 1);
      expect(decodeLogs(await get().publish([next]))).toEqual([published(next, 4n)]);
    });

    test("leaves a closed topic closed if the sender may not write, and opens the others", async () => {
      await get().open("orders", alice, await get().createWriters([]));
      const topic = await get().topicOf("orders");
      await get().close("orders");
      const receipt = await get().open(["orders", "bills"], bob);
      expect(decodeLogs(receipt)).toMatchObject([
        { eventName: "OpenRejected", args: { topic, sender: bob.address } },
        { eventName: "TopicOpened", args: { name: "bills" } },
      ]);
      expect(await get().stateOf(topic)).toMatchObject({ closed: true });
    });

    test("opens a topic and publishes its first events in one transaction", async () => {
      const batch = batchOf(get().addressOf("orders"), 2);
      const receipt = await get().openAndPublish(["orders"], [batch]);
      expect(decodeLogs(receipt)).toMatchObject([{ eventName: "TopicOpened" }, published(batch, 1n)]);
    });
  });
}

export function describeClose(get: GetFixture): void {
  describe("close", () => {
    test("refuses a name that was never opened", async () => {
      const { client, contract } = get();
      const call = client.simulateContract({ ...contract, functionName: "close", args: ["nowhere"] });
      expect(await revertOf(call)).toEqual({ name: "TopicNotFound", args: ["nowhere"] });
    });

    test("lets any sender close a topic that everyone may write to", async () => {
      const topic = await get().openTopic("orders");
      const before = await get().stateOf(topic);
      const receipt = await get().close("orders", bob);
      expect(decodeLogs(receipt)).toEqual([{ eventName: "TopicClosed", args: { topic, sender: bob.address } }]);
      expect(await get().stateOf(topic)).toEqual({ ...before, closed: true });
    });

    test("refuses a sender who may not write", async () => {
      await get().open("orders", alice, await get().createWriters([]));
      const { client, contract } = get();
      const call = { ...contract, functionName: "close", args: ["orders"], account: bob } as const;
      expect((await revertOf(client.simulateContract(call))).name).toBe("NotAllowed");
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
