import { describe, expect, it } from "vitest";
import { a, b, both, c, type CoordinatorTrial, nodeIdOf } from "./coordinator-trial.contract.ts";
import { group, otherGroup, subscriptionOf } from "./store-examples.contract.ts";

/** How subscriptions are balanced. */
export function testBalance(trial: CoordinatorTrial): void {
  describe("balance", () => {
    it("assigns callback subscriptions without an owner, in any state, to members that deliver their group", async () => {
      await trial.join(a, [group]);
      await trial.join(b, both);
      await trial.join(c, []);
      await trial.insert([
        subscriptionOf(1),
        subscriptionOf(2, { owner: nodeIdOf(9), epoch: 5, interfaceType: "JsonRPC" }),
        subscriptionOf(3, { groupId: otherGroup, state: "suspended" }),
        subscriptionOf(4, { interfaceType: "MQTT" }),
        subscriptionOf(5, { interfaceType: "STOMP", owner: nodeIdOf(9) }),
      ]);
      expect(await trial.one.balance(a)).toEqual({ given: 3, asked: 0 });
      const owners = [await trial.ownerOf(1), await trial.ownerOf(2)];
      expect(new Set(owners.map(({ owner }) => owner))).toEqual(new Set([a, b]));
      expect(owners.map(({ epoch }) => epoch)).toEqual([1, 6]);
      expect(await trial.ownerOf(3)).toEqual({ owner: b, epoch: 1 });
      expect(await trial.ownerOf(4)).toEqual({ owner: undefined, epoch: 0 });
      expect(await trial.ownerOf(5)).toEqual({ owner: nodeIdOf(9), epoch: 0 });
      expect(await trial.one.balance(a)).toEqual({ given: 0, asked: 0 });
    });

    it("clears the request of a subscription with a new owner", async () => {
      await trial.join(a);
      await trial.join(b);
      await trial.join(c);
      await trial.insert([subscriptionOf(1, { owner: a })]);
      await trial.one.claim(subscriptionOf(1).id, b);
      await trial.expire(a, [b, c]);
      await trial.one.balance(c);
      const { owner = a } = await trial.ownerOf(1);
      expect(await trial.one.listHoldings(owner)).toMatchObject([{ wantedBy: undefined }]);
    });

    it("requests subscriptions from nodes with more than their share, but not twice", async () => {
      await trial.join(a);
      await trial.insert(Array.from({ length: 30 }, (_, index) => subscriptionOf(index, { owner: a })));
      await trial.insert([subscriptionOf(99, { owner: a, state: "suspended" })]);
      await trial.join(b);
      await trial.join(c);
      expect(await trial.other.balance(c)).toEqual({ given: 0, asked: 20 });
      expect(await trial.one.balance(b)).toEqual({ given: 0, asked: 0 });
      expect(await trial.handOverAsked(a)).toBe(20);
      expect(await trial.countHeld(a, b, c)).toEqual([10, 10, 10]);
      expect(await trial.one.balance(b)).toEqual({ given: 0, asked: 0 });
    });

    it("ignores requests of a dead node", async () => {
      await trial.join(a);
      await trial.join(b);
      await trial.insert(Array.from({ length: 4 }, (_, index) => subscriptionOf(index, { owner: a })));
      await trial.one.balance(a);
      await trial.expire(b, [a]);
      await trial.join(c);
      expect(await trial.one.balance(a)).toEqual({ given: 0, asked: 2 });
      expect(await trial.handOverAsked(a)).toBe(2);
      expect(await trial.countHeld(a, c)).toEqual([2, 2]);
    });

    it("does nothing for a node that is not a member", async () => {
      await trial.join(a);
      await trial.join(b);
      await trial.insert([subscriptionOf(1)]);
      expect(await trial.one.balance(c)).toEqual({ given: 0, asked: 0 });
      await trial.expire(b, [a]);
      expect(await trial.one.balance(b)).toEqual({ given: 0, asked: 0 });
      expect(await trial.ownerOf(1)).toEqual({ owner: undefined, epoch: 0 });
    });

    it("assigns each subscription once if two nodes balance concurrently", async () => {
      await trial.join(a);
      await trial.join(b);
      await trial.insert(Array.from({ length: 500 }, (_, index) => subscriptionOf(index)));
      let given = 0;
      for (let round = 0; round < 4; round += 1) {
        const done = await Promise.all([trial.one.balance(a), trial.other.balance(b)]);
        for (const moves of done) given += moves.given;
      }
      expect(given).toBe(500);
      expect(await trial.countHeld(a, b)).toEqual([250, 250]);
      for (const { epoch } of await trial.store.listSubscriptions()) expect(epoch).toBe(1);
    });

    it("balances 10,000 over three nodes as they join and leave, in few calls, with the fewest moves", async () => {
      await trial.join(a);
      await trial.insert(Array.from({ length: 10_000 }, (_, index) => subscriptionOf(index)));
      expect(await trial.one.balance(a)).toEqual({ given: 10_000, asked: 0 });
      expect(await trial.countHeld(a)).toEqual([10_000]);
      await trial.join(b);
      await trial.join(c);
      let handedOver = 0;
      for (let call = 0; call < 7; call += 1) {
        await trial.one.balance(a);
        handedOver += await trial.handOverAsked(a, b, c);
      }
      expect(await trial.countHeld(a, b, c)).toEqual([3334, 3333, 3333]);
      expect(handedOver).toBe(6666);
      await trial.one.leave(c);
      expect(await trial.other.balance(b)).toEqual({ given: 3333, asked: 0 });
      expect(await trial.countHeld(a, b, c)).toEqual([5000, 5000, 0]);
      expect(await trial.one.balance(a)).toEqual({ given: 0, asked: 0 });
    });
  });
}
