import { describe, expect, it } from "vitest";
import { a, b, both, c, type CoordinatorScenario, nodeIdOf } from "./coordinator-scenario.contract.ts";
import { group, otherGroup, sessionOf, subscriptionOf, webhookTo } from "./store-examples.contract.ts";

/** Balancing of subscriptions. */
export function testBalance(scenario: CoordinatorScenario): void {
  describe("balance", () => {
    it("assigns callback subscriptions without a live owner, in any state, to members that deliver their group", async () => {
      await scenario.join(a, [group]);
      await scenario.join(b, both);
      await scenario.join(c, []);
      await scenario.insert([
        subscriptionOf(1),
        subscriptionOf(2, { owner: nodeIdOf(9), epoch: 5, delivery: webhookTo({ format: "JsonRPC" }) }),
        subscriptionOf(3, { groupId: otherGroup, state: "suspended" }),
        subscriptionOf(4, { delivery: sessionOf("MQTT") }),
        subscriptionOf(5, { delivery: sessionOf("STOMP"), owner: nodeIdOf(9) }),
      ]);
      expect(await scenario.one.balance(a)).toMatchObject({ assigned: 3, requested: 0 });
      const owners = [await scenario.ownerOf(1), await scenario.ownerOf(2)];
      expect(new Set(owners.map(({ owner }) => owner))).toEqual(new Set([a, b]));
      expect(owners.map(({ epoch }) => epoch)).toEqual([1, 6]);
      expect(await scenario.ownerOf(3)).toEqual({ owner: b, epoch: 1 });
      expect(await scenario.ownerOf(4)).toEqual({ owner: undefined, epoch: 0 });
      expect(await scenario.ownerOf(5)).toEqual({ owner: nodeIdOf(9), epoch: 0 });
      expect(await scenario.one.balance(a)).toMatchObject({ assigned: 0, requested: 0 });
    });

    it("names the groups with active subscriptions that no member can deliver", async () => {
      await scenario.join(a, [group]);
      await scenario.insert([
        subscriptionOf(1),
        subscriptionOf(2, { groupId: otherGroup }),
        subscriptionOf(3, { groupId: otherGroup, delivery: sessionOf("MQTT") }),
      ]);
      expect(await scenario.one.balance(a)).toEqual({ assigned: 1, requested: 0, unserved: [otherGroup] });
      await scenario.join(b, both);
      expect(await scenario.one.balance(a)).toMatchObject({ unserved: [] });
    });

    it("removes the request for a subscription when it assigns the subscription to a new owner", async () => {
      await scenario.join(a);
      await scenario.join(b);
      await scenario.join(c);
      await scenario.insert([subscriptionOf(1, { owner: a })]);
      await scenario.one.claim(subscriptionOf(1).id, b);
      await scenario.expire(a, [b, c]);
      await scenario.one.balance(c);
      const { owner = a } = await scenario.ownerOf(1);
      expect(await scenario.one.listOwned(owner)).toMatchObject([{ wantedBy: undefined }]);
    });

    it("requests each surplus subscription of a node once", async () => {
      await scenario.join(a);
      await scenario.insert(Array.from({ length: 30 }, (_, index) => subscriptionOf(index, { owner: a })));
      await scenario.insert([subscriptionOf(99, { owner: a, state: "suspended" })]);
      await scenario.join(b);
      await scenario.join(c);
      expect(await scenario.other.balance(c)).toMatchObject({ assigned: 0, requested: 20 });
      expect(await scenario.one.balance(b)).toMatchObject({ assigned: 0, requested: 0 });
      expect(await scenario.handOverRequested(a)).toBe(20);
      expect(await scenario.countHeld(a, b, c)).toEqual([10, 10, 10]);
      expect(await scenario.one.balance(b)).toMatchObject({ assigned: 0, requested: 0 });
    });

    it("requests subscriptions again if the node that requested them is dead", async () => {
      await scenario.join(a);
      await scenario.join(b);
      await scenario.insert(Array.from({ length: 4 }, (_, index) => subscriptionOf(index, { owner: a })));
      await scenario.one.balance(a);
      await scenario.expire(b, [a]);
      await scenario.join(c);
      expect(await scenario.one.balance(a)).toMatchObject({ assigned: 0, requested: 2 });
      expect(await scenario.handOverRequested(a)).toBe(2);
      expect(await scenario.countHeld(a, c)).toEqual([2, 2]);
    });

    it("does nothing for a node that is not a member", async () => {
      await scenario.join(a);
      await scenario.join(b);
      await scenario.insert([subscriptionOf(1)]);
      expect(await scenario.one.balance(c)).toMatchObject({ assigned: 0, requested: 0 });
      await scenario.expire(b, [a]);
      expect(await scenario.one.balance(b)).toMatchObject({ assigned: 0, requested: 0 });
      expect(await scenario.ownerOf(1)).toEqual({ owner: undefined, epoch: 0 });
    });

    it("assigns each subscription once if two nodes balance concurrently", async () => {
      await scenario.join(a);
      await scenario.join(b);
      await scenario.insert(Array.from({ length: 500 }, (_, index) => subscriptionOf(index)));
      let given = 0;
      for (let round = 0; round < 4; round += 1) {
        const done = await Promise.all([scenario.one.balance(a), scenario.other.balance(b)]);
        for (const moves of done) given += moves.assigned;
      }
      expect(given).toBe(500);
      expect(await scenario.countHeld(a, b)).toEqual([250, 250]);
      for (const { epoch } of await scenario.store.listSubscriptions()) expect(epoch).toBe(1);
    });

    it("balances 10,000 subscriptions when nodes join and leave, in few calls and with the fewest moves", async () => {
      await scenario.join(a);
      await scenario.insert(Array.from({ length: 10_000 }, (_, index) => subscriptionOf(index)));
      expect(await scenario.one.balance(a)).toMatchObject({ assigned: 10_000, requested: 0 });
      expect(await scenario.countHeld(a)).toEqual([10_000]);
      await scenario.join(b);
      await scenario.join(c);
      let handedOver = 0;
      for (let call = 0; call < 7; call += 1) {
        await scenario.one.balance(a);
        handedOver += await scenario.handOverRequested(a, b, c);
      }
      expect(await scenario.countHeld(a, b, c)).toEqual([3334, 3333, 3333]);
      expect(handedOver).toBe(6666);
      await scenario.one.leave(c);
      expect(await scenario.other.balance(b)).toMatchObject({ assigned: 3333, requested: 0 });
      expect(await scenario.countHeld(a, b, c)).toEqual([5000, 5000, 0]);
      expect(await scenario.one.balance(a)).toMatchObject({ assigned: 0, requested: 0 });
    });
  });
}
