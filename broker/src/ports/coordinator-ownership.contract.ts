import { beforeEach, describe, expect, it } from "vitest";
import { a, b, c, type CoordinatorTrial, lastsMs, noMember } from "./coordinator-trial.contract.ts";
import { group, otherGroup, subscriptionOf } from "./store-examples.contract.ts";

const keyOf = (number: number, epoch: number) => ({ id: subscriptionOf(number).id, epoch });

/** Who delivers a subscription, and how it becomes another's. */
export function testOwnership(trial: CoordinatorTrial): void {
  describe("a claim", () => {
    beforeEach(async () => {
      await trial.join(a);
      await trial.join(b);
    });

    it("to what is not there is unknown", async () => {
      expect(await trial.one.claim(subscriptionOf(1).id, a)).toEqual({ status: "unknown" });
    });

    it("to what nobody owns makes an owner, under a new epoch; again, it changes nothing", async () => {
      await trial.insert([subscriptionOf(1, { epoch: 7, interfaceType: "MQTT" })]);
      const held = { ...subscriptionOf(1), interfaceType: "MQTT", owner: a, epoch: 8 };
      expect(await trial.one.claim(subscriptionOf(1).id, a)).toEqual({ status: "held", subscription: held });
      expect(await trial.one.claim(subscriptionOf(1).id, a)).toEqual({ status: "held", subscription: held });
      expect(await trial.store.findSubscription(subscriptionOf(1).id)).toEqual(held);
    });

    it("to what a live node owns asks that, and changes no epoch", async () => {
      await trial.insert([subscriptionOf(1, { owner: a, epoch: 7 })]);
      expect(await trial.other.claim(subscriptionOf(1).id, b)).toEqual({ status: "asked", owner: a });
      expect(await trial.one.listHoldings(a)).toEqual([
        { id: subscriptionOf(1).id, epoch: 7, groupId: group, wantedBy: b },
      ]);
      expect(await trial.other.listHoldings(b)).toEqual([]);
    });

    it("that came first is kept, until its node is none any more", async () => {
      await trial.join(c);
      await trial.insert([subscriptionOf(1, { owner: a })]);
      await trial.one.claim(subscriptionOf(1).id, b);
      await trial.other.claim(subscriptionOf(1).id, c);
      expect(await trial.one.listHoldings(a)).toMatchObject([{ wantedBy: b }]);
      await trial.one.leave(b);
      expect(await trial.one.listHoldings(a)).toMatchObject([{ wantedBy: undefined }]);
      await trial.other.claim(subscriptionOf(1).id, c);
      expect(await trial.one.listHoldings(a)).toMatchObject([{ wantedBy: c }]);
    });

    it("to what a dead node owned makes an owner at once", async () => {
      await trial.insert([subscriptionOf(1, { owner: a }), subscriptionOf(2, { owner: c })]);
      expect(await trial.other.claim(subscriptionOf(2).id, b)).toMatchObject({ status: "held" });
      await trial.expire(a, [b]);
      expect(await trial.other.claim(subscriptionOf(1).id, b)).toMatchObject({ status: "held" });
      expect(await trial.ownerOf(1)).toEqual({ owner: b, epoch: 1 });
      const progress = {
        cursor: subscriptionOf(9).cursor,
        notifiedCount: 9,
        notifiedAt: 9,
        failedAttempts: 0,
        failedMs: 0,
      };
      const { id } = subscriptionOf(1);
      expect(await trial.store.saveProgress([{ ...progress, id, epoch: 0 }])).toEqual([id]);
      expect(await trial.store.saveProgress([{ ...progress, id, epoch: 1 }])).toEqual([]);
    });

    it("to a suspended one makes an owner at once", async () => {
      await trial.insert([subscriptionOf(1, { owner: a, state: "suspended" })]);
      expect(await trial.other.claim(subscriptionOf(1).id, b)).toMatchObject({ status: "held" });
      expect(await trial.ownerOf(1)).toEqual({ owner: b, epoch: 1 });
    });

    it("is heard by one of two that claim at once", async () => {
      for (let number = 1; number <= 10; number += 1) {
        const { id } = subscriptionOf(number);
        await trial.insert([subscriptionOf(number)]);
        const answers = await Promise.all([trial.one.claim(id, a), trial.other.claim(id, b)]);
        expect(answers.map(({ status }) => status).toSorted()).toEqual(["asked", "held"]);
        expect(await trial.ownerOf(number)).toMatchObject({ epoch: 1 });
      }
    });

    it("of a node that is no member is refused", async () => {
      await trial.insert([subscriptionOf(1)]);
      await expect(trial.one.claim(subscriptionOf(1).id, c)).rejects.toEqual(noMember);
      await trial.one.leave(a);
      await expect(trial.one.claim(subscriptionOf(1).id, a)).rejects.toEqual(noMember);
      expect(await trial.ownerOf(1)).toEqual({ owner: undefined, epoch: 0 });
    });
  });

  describe("handing over", () => {
    beforeEach(async () => {
      await trial.join(a);
      await trial.join(b);
      await trial.insert([subscriptionOf(1, { owner: a, epoch: 7 }), subscriptionOf(2, { owner: a, epoch: 7 })]);
    });
    it("makes the one that asks the owner, under a new epoch", async () => {
      await trial.other.claim(subscriptionOf(1).id, b);
      await trial.one.handOver([keyOf(1, 7), keyOf(2, 7), keyOf(3, 0)]);
      expect(await trial.ownerOf(1)).toEqual({ owner: b, epoch: 8 });
      expect(await trial.ownerOf(2)).toEqual({ owner: a, epoch: 7 });
      expect(await trial.one.listHoldings(b)).toEqual([{ ...keyOf(1, 8), groupId: group, wantedBy: undefined }]);
      await trial.one.handOver([]);
    });

    it("under another epoch changes nothing", async () => {
      await trial.other.claim(subscriptionOf(1).id, b);
      await trial.one.handOver([keyOf(1, 6), keyOf(1, 8)]);
      expect(await trial.ownerOf(1)).toEqual({ owner: a, epoch: 7 });
      expect(await trial.one.listHoldings(a)).toMatchObject([{ wantedBy: b }, { wantedBy: undefined }]);
    });

    it("to a node that is none any more changes nothing", async () => {
      await trial.other.claim(subscriptionOf(1).id, b);
      await trial.other.claim(subscriptionOf(2).id, b);
      await trial.one.leave(b);
      await trial.one.handOver([keyOf(1, 7)]);
      await trial.join(c);
      await trial.expire(b, [a, c]);
      await trial.one.handOver([keyOf(2, 7)]);
      for (const number of [1, 2]) expect(await trial.ownerOf(number)).toEqual({ owner: a, epoch: 7 });
    });
  });

  describe("letting go", () => {
    beforeEach(async () => {
      await trial.join(a);
      await trial.join(b);
      await trial.insert([1, 2, 3].map((number) => subscriptionOf(number, { owner: a, epoch: 7 })));
    });

    it("gives what another node asks for to that, and sets the rest free, each under a new epoch", async () => {
      await trial.other.claim(subscriptionOf(1).id, b);
      await trial.one.letGo([keyOf(1, 7), keyOf(2, 7), keyOf(3, 6), keyOf(4, 0)]);
      expect(await trial.ownerOf(1)).toEqual({ owner: b, epoch: 8 });
      expect(await trial.ownerOf(2)).toEqual({ owner: undefined, epoch: 8 });
      expect(await trial.ownerOf(3)).toEqual({ owner: a, epoch: 7 });
      const progress = {
        cursor: subscriptionOf(9).cursor,
        notifiedCount: 9,
        notifiedAt: 9,
        failedAttempts: 0,
        failedMs: 0,
      };
      expect(await trial.store.saveProgress([{ ...keyOf(2, 7), ...progress }])).toEqual([subscriptionOf(2).id]);
      await trial.one.letGo([]);
    });

    it("sets free also what a node asked for that is none any more", async () => {
      await trial.other.claim(subscriptionOf(1).id, b);
      await trial.one.leave(b);
      await trial.one.letGo([keyOf(1, 7)]);
      expect(await trial.ownerOf(1)).toEqual({ owner: undefined, epoch: 8 });
    });

    it("leaves what is given out at once, though its node is still a member", async () => {
      await trial.one.renew(a, { lastsMs, groups: [] });
      await trial.one.letGo([keyOf(1, 7), keyOf(2, 7), keyOf(3, 7)]);
      expect(await trial.other.balance(b)).toEqual({ given: 3, asked: 0 });
      expect(await trial.countHeld(a, b)).toEqual([0, 3]);
    });
  });

  it("holdings are the active ones of a node, of every kind, by identifier", async () => {
    await trial.join(a);
    await trial.insert([
      subscriptionOf(3, { owner: a, epoch: 3 }),
      subscriptionOf(1, { owner: a, epoch: 1, interfaceType: "MQTT", groupId: otherGroup }),
      subscriptionOf(2, { owner: a, state: "suspended" }),
      subscriptionOf(4, { owner: b }),
      subscriptionOf(5),
    ]);
    expect(await trial.one.listHoldings(a)).toEqual([
      { id: subscriptionOf(1).id, epoch: 1, groupId: otherGroup, wantedBy: undefined },
      { id: subscriptionOf(3).id, epoch: 3, groupId: group, wantedBy: undefined },
    ]);
    expect(await trial.one.listHoldings(c)).toEqual([]);
  });
}
