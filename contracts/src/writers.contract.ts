import { describe, expect, test } from "vitest";
import { everyone } from "./constants.ts";
import { batchOf } from "./testing/batches.ts";
import {
  alice,
  bob,
  carol,
  decodeLogs,
  type GetFixture,
  type RegistryFixture,
  revertOf,
} from "./testing/registry-fixture.ts";

export function describeWriters(get: GetFixture): void {
  describe("writers", () => {
    test("refuses a writer set that the sender does not belong to", async () => {
      const writers = await get().createWriters([carol.address]);
      await expectNotAllowed(get(), ["open", ["orders"], writers], bob);
      await expectNotAllowed(get(), ["open", ["orders"], writers + 1], alice);
      await get().open("orders", carol, writers);
      expect((await get().topics(0n, 1n))[0]).toMatchObject({ sender: carol.address, writers });
    });

    test("lets only the owner of a topic and the members of its set write to it", async () => {
      const writers = await get().createWriters([bob.address]);
      await get().open("orders", bob, writers);
      await get().setWriter(writers, bob.address, { isAllowed: false });
      expect(await writersAmong(get(), "orders")).toEqual([alice, bob]);
      await get().setWriter(writers, carol.address, { isAllowed: true });
      expect(await writersAmong(get(), "orders")).toEqual([alice, bob, carol]);
    });

    test("lets only members add and remove members", async () => {
      const writers = await get().createWriters([bob.address]);
      const changed = { writers, account: carol.address, sender: bob.address, allowed: true };
      const receipt = await get().setWriter(writers, carol.address, { isAllowed: true, by: bob });
      expect(decodeLogs(receipt)).toEqual([{ eventName: "WriterChanged", args: changed }]);
      await get().setWriter(writers, bob.address, { isAllowed: false, by: carol });
      await expectNotAllowed(get(), ["setWriter", writers, bob.address, true], bob);
      await expectNotAllowed(get(), ["setWriter", everyone, bob.address, true], bob);
    });

    test("lets only the owner and writers change the writer set of a topic", async () => {
      const [first, second] = [await get().createWriters([bob.address]), await get().createWriters([bob.address])];
      await get().open("orders", alice, first);
      await expectNotAllowed(get(), ["setWriters", "orders", everyone], carol);
      await get().setWriters("orders", second, bob);
      expect(await writersAmong(get(), "orders")).toEqual([alice, bob]);
      await expectNotAllowed(get(), ["setWriters", "orders", await get().createWriters([], carol)], alice);
      await get().setWriters("orders", everyone, alice);
      expect(await writersAmong(get(), "orders")).toEqual([alice, bob, carol]);
    });

    test("lets only the owner change the writer set of a topic that everyone may write to", async () => {
      await get().openTopic("orders");
      const writers = await get().createWriters([], bob);
      await expectNotAllowed(get(), ["setWriters", "orders", writers], bob);
      const own = await get().createWriters([]);
      const receipt = await get().setWriters("orders", own);
      const topic = await get().topicOf("orders");
      const args = { topic, sender: alice.address, writers: own };
      expect(decodeLogs(receipt)).toEqual([{ eventName: "TopicWritersChanged", args }]);
    });
  });
}

/** Returns those of Alice, Bob and Carol who may write according to `isWriter`, and checks that `publish` agrees. */
async function writersAmong(fixture: RegistryFixture, name: string) {
  const topic = await fixture.topicOf(name);
  const outcomes = await Promise.all(
    [alice, bob, carol].map(async (account) => {
      const args = [topic, account.address] as const;
      const isWriter = await fixture.client.readContract({ ...fixture.contract, functionName: "isWriter", args });
      const [log] = decodeLogs(await fixture.publish([batchOf(topic, 1)], account));
      expect(log?.eventName).toBe(isWriter ? "EventsPublished" : "BatchRejected");
      return isWriter ? [account] : [];
    }),
  );
  return outcomes.flat();
}

async function expectNotAllowed(
  { client, contract }: RegistryFixture,
  [functionName, ...args]: readonly ["open" | "setWriter" | "setWriters", ...unknown[]],
  account = alice,
): Promise<void> {
  // The arguments match the function named beside them.
  const call = { ...contract, functionName, args, account } as unknown as Parameters<typeof client.simulateContract>[0];
  expect((await revertOf(client.simulateContract(call))).name).toBe("NotAllowed");
}
