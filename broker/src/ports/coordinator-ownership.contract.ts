import { beforeEach, describe, expect, it } from "vitest";
import { a, b, c, type CoordinatorScenario, lastsMs, noMember } from "./coordinator-scenario.contract.ts";
import { group, otherGroup, sessionOf, subscriptionOf } from "./store-examples.contract.ts";

const keyOf = (number: number, epoch: number) => ({ id: subscriptionOf(number).id, epoch });

/** Ownership of subscriptions. */
export function testOwnership(scenario: CoordinatorScenario): void {
  describe("a claim", () => {
    beforeEach(async () => {
      await scenario.join(a);
      await scenario.join(b);
    });

    it("returns unknown for a missing subscription", async () => {
      expect(await scenario.one.claim(subscriptionOf(1).id, a)).toEqual({ status: "unknown" });
    });

    it("assigns a subscription without an owner, under a new epoch; repeating the claim changes nothing", async () => {
      await scenario.insert([subscriptionOf(1, { epoch: 7, delivery: sessionOf("MQTT") })]);
      const held = { ...subscriptionOf(1), delivery: sessionOf("MQTT"), owner: a, epoch: 8 };
      expect(await scenario.one.claim(subscriptionOf(1).id, a)).toEqual({ status: "owned", subscription: held });
      expect(await scenario.one.claim(subscriptionOf(1).id, a)).toEqual({ status: "owned", subscription: held });
      expect(await scenario.store.findSubscription(subscriptionOf(1).id)).toEqual(held);
    });

    it("requests a subscription from its live owner, and keeps the epoch", async () => {
      await scenario.insert([subscriptionOf(1, { owner: a, epoch: 7 })]);
      expect(await scenario.other.claim(subscriptionOf(1).id, b)).toEqual({ status: "asked", owner: a });
      expect(await scenario.one.listOwned(a)).toEqual([
        { id: subscriptionOf(1).id, epoch: 7, groupId: group, wantedBy: b },
      ]);
      expect(await scenario.other.listOwned(b)).toEqual([]);
    });

    it("keeps the first request until the requesting node leaves", async () => {
      await scenario.join(c);
      await scenario.insert([subscriptionOf(1, { owner: a })]);
      await scenario.one.claim(subscriptionOf(1).id, b);
      await scenario.other.claim(subscriptionOf(1).id, c);
      expect(await scenario.one.listOwned(a)).toMatchObject([{ wantedBy: b }]);
      await scenario.one.leave(b);
      expect(await scenario.one.listOwned(a)).toMatchObject([{ wantedBy: undefined }]);
      await scenario.other.claim(subscriptionOf(1).id, c);
      expect(await scenario.one.listOwned(a)).toMatchObject([{ wantedBy: c }]);
    });

    it("claims a dead node's subscription at once", async () => {
      await scenario.insert([subscriptionOf(1, { owner: a }), subscriptionOf(2, { owner: c })]);
      expect(await scenario.other.claim(subscriptionOf(2).id, b)).toMatchObject({ status: "owned" });
      await scenario.expire(a, [b]);
      expect(await scenario.other.claim(subscriptionOf(1).id, b)).toMatchObject({ status: "owned" });
      expect(await scenario.ownerOf(1)).toEqual({ owner: b, epoch: 1 });
      const progress = {
        cursor: subscriptionOf(9).cursor,
        notifiedCount: 9,
        notifiedAt: 9,
        failedAttempts: 0,
        failedMs: 0,
        failingSince: 0,
        retryAt: 0,
      };
      const { id } = subscriptionOf(1);
      expect(await scenario.store.saveProgress([{ ...progress, id, epoch: 0 }])).toEqual([id]);
      expect(await scenario.store.saveProgress([{ ...progress, id, epoch: 1 }])).toEqual([]);
    });

    it("claims a suspended subscription at once", async () => {
      await scenario.insert([subscriptionOf(1, { owner: a, state: "suspended" })]);
      expect(await scenario.other.claim(subscriptionOf(1).id, b)).toMatchObject({ status: "owned" });
      expect(await scenario.ownerOf(1)).toEqual({ owner: b, epoch: 1 });
    });

    it("of two nodes that claim at the same time makes one the owner, and answers the other with `asked`", async () => {
      for (let number = 1; number <= 10; number += 1) {
        const { id } = subscriptionOf(number);
        await scenario.insert([subscriptionOf(number)]);
        const answers = await Promise.all([scenario.one.claim(id, a), scenario.other.claim(id, b)]);
        expect(answers.map(({ status }) => status).toSorted()).toEqual(["asked", "owned"]);
        expect(await scenario.ownerOf(number)).toMatchObject({ epoch: 1 });
      }
    });

    it("refuses a node that is not a member", async () => {
      await scenario.insert([subscriptionOf(1)]);
      await expect(scenario.one.claim(subscriptionOf(1).id, c)).rejects.toEqual(noMember);
      await scenario.one.leave(a);
      await expect(scenario.one.claim(subscriptionOf(1).id, a)).rejects.toEqual(noMember);
      expect(await scenario.ownerOf(1)).toEqual({ owner: undefined, epoch: 0 });
    });
  });

  describe("handing over", () => {
    beforeEach(async () => {
      await scenario.join(a);
      await scenario.join(b);
      await scenario.insert([subscriptionOf(1, { owner: a, epoch: 7 }), subscriptionOf(2, { owner: a, epoch: 7 })]);
    });
    it("makes the requesting node the owner, under a new epoch", async () => {
      await scenario.other.claim(subscriptionOf(1).id, b);
      await scenario.one.handOver([keyOf(1, 7), keyOf(2, 7), keyOf(3, 0)]);
      expect(await scenario.ownerOf(1)).toEqual({ owner: b, epoch: 8 });
      expect(await scenario.ownerOf(2)).toEqual({ owner: a, epoch: 7 });
      expect(await scenario.one.listOwned(b)).toEqual([{ ...keyOf(1, 8), groupId: group, wantedBy: undefined }]);
      await scenario.one.handOver([]);
    });

    it("changes nothing under another epoch", async () => {
      await scenario.other.claim(subscriptionOf(1).id, b);
      await scenario.one.handOver([keyOf(1, 6), keyOf(1, 8)]);
      expect(await scenario.ownerOf(1)).toEqual({ owner: a, epoch: 7 });
      expect(await scenario.one.listOwned(a)).toMatchObject([{ wantedBy: b }, { wantedBy: undefined }]);
    });

    it("changes nothing if the requesting node has left or expired", async () => {
      await scenario.other.claim(subscriptionOf(1).id, b);
      await scenario.other.claim(subscriptionOf(2).id, b);
      await scenario.one.leave(b);
      await scenario.one.handOver([keyOf(1, 7)]);
      await scenario.join(c);
      await scenario.expire(b, [a, c]);
      await scenario.one.handOver([keyOf(2, 7)]);
      for (const number of [1, 2]) expect(await scenario.ownerOf(number)).toEqual({ owner: a, epoch: 7 });
    });
  });

  describe("releasing", () => {
    beforeEach(async () => {
      await scenario.join(a);
      await scenario.join(b);
      await scenario.insert([1, 2, 3].map((number) => subscriptionOf(number, { owner: a, epoch: 7 })));
    });

    it("gives requested subscriptions to the requesting node and frees the others, each under a new epoch", async () => {
      await scenario.other.claim(subscriptionOf(1).id, b);
      await scenario.one.release([keyOf(1, 7), keyOf(2, 7), keyOf(3, 6), keyOf(4, 0)]);
      expect(await scenario.ownerOf(1)).toEqual({ owner: b, epoch: 8 });
      expect(await scenario.ownerOf(2)).toEqual({ owner: undefined, epoch: 8 });
      expect(await scenario.ownerOf(3)).toEqual({ owner: a, epoch: 7 });
      const progress = {
        cursor: subscriptionOf(9).cursor,
        notifiedCount: 9,
        notifiedAt: 9,
        failedAttempts: 0,
        failedMs: 0,
        failingSince: 0,
        retryAt: 0,
      };
      expect(await scenario.store.saveProgress([{ ...keyOf(2, 7), ...progress }])).toEqual([subscriptionOf(2).id]);
      await scenario.one.release([]);
    });

    it("also frees a subscription whose requesting node has left", async () => {
      await scenario.other.claim(subscriptionOf(1).id, b);
      await scenario.one.leave(b);
      await scenario.one.release([keyOf(1, 7)]);
      expect(await scenario.ownerOf(1)).toEqual({ owner: undefined, epoch: 8 });
    });

    it("lets other nodes get the subscriptions while the releasing node is still a member", async () => {
      await scenario.one.renew(a, { lastsMs, groups: [] });
      await scenario.one.release([keyOf(1, 7), keyOf(2, 7), keyOf(3, 7)]);
      expect(await scenario.other.balance(b)).toMatchObject({ assigned: 3, requested: 0 });
      expect(await scenario.countHeld(a, b)).toEqual([0, 3]);
    });
  });

  it("listOwned returns a node's active subscriptions, both of callbacks and of sessions, of every group, ordered by identifier", async () => {
    await scenario.join(a);
    await scenario.insert([
      subscriptionOf(3, { owner: a, epoch: 3 }),
      subscriptionOf(1, { owner: a, epoch: 1, delivery: sessionOf("MQTT"), groupId: otherGroup }),
      subscriptionOf(2, { owner: a, state: "suspended" }),
      subscriptionOf(4, { owner: b }),
      subscriptionOf(5),
    ]);
    expect(await scenario.one.listOwned(a)).toEqual([
      { id: subscriptionOf(1).id, epoch: 1, groupId: otherGroup, wantedBy: undefined },
      { id: subscriptionOf(3).id, epoch: 3, groupId: group, wantedBy: undefined },
    ]);
    expect(await scenario.one.listOwned(c)).toEqual([]);
  });
}
