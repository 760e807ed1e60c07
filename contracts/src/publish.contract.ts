import { type Address, toHex, zeroAddress, zeroHash } from "viem";
import { describe, expect, test } from "vitest";
import { batchRejectedReason } from "./constants.ts";
import { batchOf, published, rejected } from "./testing/batches.ts";
import { deployForeignProxy } from "./testing/foreign-proxy.ts";
import {
  alice,
  type Batch,
  bob,
  carol,
  decodeLogs,
  type GetFixture,
  legacy,
  type RegistryFixture,
  revertOf,
} from "./testing/registry-fixture.ts";

export function describePublish(get: GetFixture): void {
  describe("publish", () => {
    test("emits no log for an empty list of batches", async () => {
      expect((await get().publish([])).logs).toEqual([]);
    });

    test("emits the bytes of the events unchanged", async () => {
      const topic = await get().openTopic("orders");
      const batch = batchOf(topic, 7, toHex(Uint8Array.from({ length: 21 }, (_, index) => 255 - index)));
      const receipt = await get().publish([batch], bob);
      expect(decodeLogs(receipt)).toEqual([published(batch, 1n, bob.address)]);
      expect(await get().stateOf(topic)).toMatchObject({ sequence: 7n, lastBlock: receipt.blockNumber });
    });

    test("publishes 100 KiB of events in one batch", async () => {
      const topic = await get().openTopic("orders");
      const batch = batchOf(
        topic,
        400,
        toHex(Uint8Array.from({ length: 100 * 1024 + 1 }, (_, index) => (index * 7) % 251)),
      );
      expect(decodeLogs(await get().publish([batch]))).toEqual([published(batch, 1n)]);
    });

    test("numbers the batches of one call in order", async () => {
      const orders = await get().openTopic("orders");
      const bills = await get().openTopic("bills");
      const batches = [
        batchOf(orders, 2),
        batchOf(bills, 5),
        batchOf(orders, 3),
        batchOf(orders, 1),
        batchOf(bills, 1),
      ];
      const firsts = [1n, 1n, 3n, 6n, 6n];
      const receipt = await get().publish(batches);
      expect(decodeLogs(receipt)).toEqual(batches.map((batch, index) => published(batch, firsts[index] ?? 0n)));
    });

    test("numbers events without a gap over many calls, topics and senders", async () => {
      const topics = [await get().openTopic("a"), await get().openTopic("b"), await get().openTopic("c")];
      await Promise.all(
        [alice, bob, carol].map((account, index) => publishRounds(get(), { topics, account, seed: index })),
      );
      for (const topic of topics) {
        const { client, contract } = get();
        const filter = { ...contract, eventName: "EventsPublished", args: { topic }, strict: true } as const;
        const logs = await client.getContractEvents({ ...filter, fromBlock: 0n });
        const spans = logs.map(({ args }) => ({ first: args.firstSequence, count: BigInt(args.count) }));
        expect(new Set(logs.map(({ args }) => args.sender)).size).toBe(3);
        expect(spans.map(({ first }) => first)).toEqual(expectedFirsts(spans));
        const total = spans.reduce((sum, { count }) => sum + count, 0n);
        expect((await get().stateOf(topic)).sequence).toBe(total);
      }
    });
  });
}

async function publishRounds(
  fixture: RegistryFixture,
  { topics, account, seed }: { topics: readonly Address[]; account: typeof alice; seed: number },
): Promise<void> {
  for (let round = 0; round < 8; round += 1) {
    const batches = topics.flatMap((topic, index) => [
      batchOf(topic, 1 + ((seed + round * index) % 5)),
      batchOf(topic, 1),
    ]);
    await fixture.publish(batches, account);
  }
}

function expectedFirsts(spans: readonly { count: bigint }[]): bigint[] {
  let next = 1n;
  return spans.map(({ count }) => {
    const first = next;
    next += count;
    return first;
  });
}

export function describeRejections(get: GetFixture): void {
  describe("publish", () => {
    const { topicUnknown, topicClosed, batchEmpty, countTooLarge, notAWriter } = batchRejectedReason;

    test("skips a batch for an address without code", async () => {
      await expectRejected(get(), batchOf(bob.address, 1), topicUnknown);
      await expectRejected(get(), batchOf(zeroAddress, 1), topicUnknown);
    });

    test("skips a batch for an address with code, and does not call it", async () => {
      const emitter = await get().deployCode(emitterBytecode);
      const hash = await get().client.sendTransaction({ to: emitter, ...legacy });
      expect((await get().client.waitForTransactionReceipt({ hash, checkReplacement: false })).logs).toHaveLength(1);
      const receipt = await get().publish([batchOf(emitter, 1)]);
      expect(receipt.logs).toHaveLength(1);
      expect(decodeLogs(receipt)).toEqual([rejected(batchOf(emitter, 1), topicUnknown)]);
      await expectRejected(get(), batchOf(get().registry, 1), topicUnknown);
    });

    test("skips a batch for a proxy that the registry did not create, and for the implementation", async () => {
      const { proxy, implementation } = await deployForeignProxy(get());
      await expectRejected(get(), batchOf(proxy, 1), topicUnknown);
      await expectRejected(get(), batchOf(implementation, 1), topicUnknown);
    });

    test("skips a batch for a closed topic", async () => {
      const topic = await get().openTopic("orders");
      await get().close("orders");
      const before = await get().stateOf(topic);
      await expectRejected(get(), batchOf(topic, 1), topicClosed);
      expect(await get().stateOf(topic)).toEqual(before);
    });

    test("skips a batch without events", async () => {
      const topic = await get().openTopic("orders");
      const before = await get().stateOf(topic);
      await expectRejected(get(), batchOf(topic, 0), batchEmpty);
      await expectRejected(get(), { topic, count: 0, eventsRoot: zeroHash, events: "0x" }, batchEmpty);
      expect(await get().stateOf(topic)).toEqual(before);
    });

    test("skips a batch that claims more events than fit into its bytes", async () => {
      const topic = await get().openTopic("orders");
      const fitting = batchOf(topic, 3);
      for (const count of [4, 2 ** 32 - 1]) await expectRejected(get(), { ...fitting, count }, countTooLarge);
      expect(await get().stateOf(topic)).toMatchObject({ sequence: 0n });
      expect(decodeLogs(await get().publish([fitting]))).toEqual([published(fitting, 1n)]);
    });

    test("skips a batch by a sender who may not write", async () => {
      const writers = await get().createWriters([]);
      await get().open("orders", alice, writers);
      const batch = batchOf(await get().topicOf("orders"), 1);
      expect(decodeLogs(await get().publish([batch], bob))).toEqual([rejected(batch, notAWriter, bob.address)]);
      expect(decodeLogs(await get().publish([batch]))).toEqual([published(batch, 1n)]);
    });

    test("reports the first reason that applies", async () => {
      const topic = await get().openTopic("orders");
      await get().close("orders");
      await expectRejected(get(), batchOf(topic, 0), topicClosed);
      await expectRejected(get(), batchOf(bob.address, 0), topicUnknown);
      await get().open("few", bob, await get().createWriters([], bob));
      const few = await get().topicOf("few");
      await expectRejected(get(), { ...batchOf(few, 1), events: "0x" }, countTooLarge);
      await expectRejected(get(), batchOf(few, 1), notAWriter);
    });

    test("skips some batches and publishes the others in order, one log each", async () => {
      const topic = await get().openTopic("orders");
      const shut = await get().openTopic("shut");
      await get().close("shut");
      const good = [batchOf(topic, 2), batchOf(topic, 3), batchOf(topic, 1)] as const;
      const bad = [batchOf(bob.address, 1), batchOf(shut, 1), batchOf(topic, 0)] as const;
      const receipt = await get().publish([bad[0], good[0], bad[1], good[1], bad[2], good[2]]);
      expect(decodeLogs(receipt)).toEqual([
        rejected(bad[0], topicUnknown),
        published(good[0], 1n),
        rejected(bad[1], topicClosed),
        published(good[1], 3n),
        rejected(bad[2], batchEmpty),
        published(good[2], 6n),
      ]);
    });

    test("publishes all batches in order, one log each, if publishAll accepts all", async () => {
      const [orders, bills] = [await get().openTopic("orders"), await get().openTopic("bills")];
      const batches = [batchOf(orders, 2), batchOf(bills, 5), batchOf(orders, 3)] as const;
      const receipt = await get().publishAll(batches);
      expect(decodeLogs(receipt)).toEqual([
        published(batches[0], 1n),
        published(batches[1], 1n),
        published(batches[2], 3n),
      ]);
    });

    test("publishes no batch if publishAll refuses one", async () => {
      const orders = await get().openTopic("orders");
      const shut = await get().openTopic("shut");
      await get().close("shut");
      const good = batchOf(orders, 2);
      const before = await get().stateOf(orders);
      const refused = [
        [batchOf(bob.address, 1), topicUnknown],
        [batchOf(shut, 1), topicClosed],
        [batchOf(orders, 0), batchEmpty],
        [{ ...batchOf(orders, 1), events: "0x" } as const, countTooLarge],
      ] as const;
      for (const [bad, reason] of refused) {
        const expected = { name: "PublishRefused", args: [bad.topic, reason] };
        expect(await revertOf(simulatePublishAll(get(), [good, bad]))).toEqual(expected);
        const call = get().publishAll([good, bad]);
        await expect(call).rejects.toThrow("reverted");
      }
      expect(await get().stateOf(orders)).toEqual(before);
    });
  });
}

function simulatePublishAll({ client, contract }: RegistryFixture, batches: readonly Batch[]): Promise<unknown> {
  return client.simulateContract({ ...contract, functionName: "publishAll", args: [batches], account: alice });
}

async function expectRejected(fixture: RegistryFixture, batch: Batch, reason: number): Promise<void> {
  expect(decodeLogs(await fixture.publish([batch]))).toEqual([rejected(batch, reason)]);
}

// A contract that emits an empty log whenever it is called: PUSH1 0 PUSH1 0 LOG0 STOP.
const emitterBytecode = "0x6560006000a0006000526006601af3";
