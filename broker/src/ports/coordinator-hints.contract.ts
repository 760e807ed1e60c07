import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseGroupId } from "../domain/group-id.ts";
import type { NodeId } from "../domain/node.ts";
import {
  a,
  addressOf,
  b,
  both,
  c,
  type CoordinatorScenario,
  lastsMs,
  nodeIdOf,
} from "./coordinator-scenario.contract.ts";
import type { Departure, Hint, TakeOver } from "./coordinator.ts";
import { blockOf, group, otherGroup, sessionOf, subscriptionOf } from "./store-examples.contract.ts";

const first = blockOf(1);
const hintOf = (number: number): Hint => ({ kind: "subscription", id: subscriptionOf(number).id });

function takenOf(nodeId: NodeId, what: Partial<TakeOver>): Hint {
  return { kind: "taken", nodeId, from: undefined, groupId: undefined, subscriptions: 0, ...what };
}

function goneOf(nodeId: NodeId, what: Partial<Departure>): Hint {
  return { kind: "gone", how: "left", nodeId, address: addressOf(nodeId), subscriptions: 0, groups: 0, ...what };
}

/** Notifications of changes. */
export function testHints(scenario: CoordinatorScenario): void {
  describe("hints", () => {
    const markGroup = parseGroupId("mark");
    const heard: Hint[] = [];
    let marks: number;
    let end: () => Promise<void>;
    beforeEach(async () => {
      marks = 0;
      heard.length = 0;
      end = await scenario.other.listen((hint) => heard.push(hint));
      await scenario.join(a);
      await scenario.join(b);
      await scenario.insert([subscriptionOf(1, { owner: a }), subscriptionOf(2), subscriptionOf(3)]);
      await listHeard();
    });
    afterEach(async () => end());

    /** The hints since the previous call, in the order of the changes. */
    async function listHeard(): Promise<readonly Hint[]> {
      await scenario.store.applyBlocks(markGroup, [blockOf((marks += 1))]);
      const isMark = (hint: Hint) => hint.kind === "index" && hint.groupId === markGroup;
      await until(() => heard.some(isMark));
      return heard.splice(0).filter((hint) => !isMark(hint));
    }
    async function expectHeard(...hints: readonly Hint[]): Promise<void> {
      expect(await listHeard()).toEqual(hints);
    }
    it("report nodes that join and leave", async () => {
      await scenario.one.join({ id: c, address: addressOf(c) }, lastsMs);
      await expectHeard({ kind: "nodes" });
      await scenario.one.join({ id: nodeIdOf(4), address: addressOf(c) }, lastsMs);
      await scenario.one.renew(c, { lastsMs, groups: both });
      await scenario.one.leave(c);
      await expectHeard(goneOf(c, { how: "left" }), { kind: "nodes" });
      await scenario.one.leave(c);
      await expectHeard();
    });

    it("report each expired or leaving node once, with the number of leases and subscriptions that it held", async () => {
      await scenario.join(c);
      await scenario.one.takeLease(group, a);
      await scenario.one.takeLease(otherGroup, c);
      await scenario.insert([4, 5].map((number) => subscriptionOf(number, { owner: c })));
      await scenario.insert([subscriptionOf(6, { owner: a, delivery: sessionOf("MQTT") })]);
      await scenario.insert([subscriptionOf(7, { owner: a, state: "suspended" })]);
      await scenario.expire(a, [b, c]);
      await listHeard();
      await scenario.one.balance(b);
      await scenario.one.takeLease(group, b);
      await scenario.other.balance(c);
      const gone = (await listHeard()).filter(({ kind }) => kind === "gone");
      expect(gone).toEqual([goneOf(a, { how: "expired", subscriptions: 3, groups: 1 })]);
      const { length: subscriptions } = (await scenario.store.listSubscriptions()).filter(({ owner }) => owner === c);
      expect(subscriptions).toBeGreaterThanOrEqual(2);
      await scenario.one.leave(c);
      await expectHeard(goneOf(c, { how: "left", subscriptions, groups: 1 }), { kind: "nodes" });
    });

    it("report a dead node whose address another node takes, but not an earlier membership of the same node", async () => {
      await scenario.expire(a, [b]);
      await scenario.one.join({ id: c, address: addressOf(a) }, lastsMs);
      await expectHeard(goneOf(a, { how: "expired", subscriptions: 1 }), { kind: "nodes" });
      await scenario.one.renew(b, { lastsMs, groups: both });
      await scenario.expire(c, [b]);
      await scenario.one.join({ id: nodeIdOf(4), address: addressOf(a), replaces: [c] }, lastsMs);
      await scenario.one.join({ id: nodeIdOf(5), address: addressOf(a), replaces: [nodeIdOf(4)] }, lastsMs);
      await expectHeard({ kind: "nodes" }, { kind: "nodes" });
    });

    it("report claims and handovers once", async () => {
      await scenario.one.claim(subscriptionOf(1).id, b);
      await expectHeard(hintOf(1));
      await scenario.one.claim(subscriptionOf(1).id, b);
      await scenario.one.claim(subscriptionOf(1).id, a);
      await scenario.one.claim(subscriptionOf(9).id, a);
      await scenario.one.claim(subscriptionOf(2).id, b);
      await expectHeard(hintOf(2));
      await scenario.one.handOver([{ id: subscriptionOf(1).id, epoch: 1 }]);
      await scenario.one.handOver([{ id: subscriptionOf(1).id, epoch: 0 }]);
      await expectHeard(hintOf(1));
    });

    it("report many subscriptions of one handover by a single hint", async () => {
      const many = Array.from({ length: 200 }, (_, index) => subscriptionOf(1000 + index, { owner: a }));
      await scenario.insert(many);
      for (const { id } of many) await scenario.one.claim(id, b);
      await listHeard();
      await scenario.one.handOver(many);
      await expectHeard({ kind: "nodes" });
    });

    it("report a released subscription by its id, or as a change of nodes if it has no new owner", async () => {
      await scenario.one.claim(subscriptionOf(1).id, b);
      await listHeard();
      await scenario.one.release([{ id: subscriptionOf(1).id, epoch: 0 }]);
      await expectHeard(hintOf(1));
      await scenario.other.release([{ id: subscriptionOf(1).id, epoch: 1 }]);
      await expectHeard({ kind: "nodes" });
    });

    it("report subscriptions that balance assigned, an expired member, and a released lease", async () => {
      await scenario.one.balance(a);
      await expectHeard(takenOf(a, { subscriptions: 1 }), takenOf(b, { subscriptions: 1 }), { kind: "nodes" });
      await scenario.one.balance(a);
      const lease = await scenario.one.takeLease(group, a);
      if (lease === undefined) throw new Error("the lease is not free");
      await scenario.one.releaseLease({ ...lease, epoch: 0 });
      await scenario.one.releaseLease(lease);
      await expectHeard(takenOf(a, { groupId: group }), { kind: "nodes" });
      const { length: subscriptions } = await scenario.one.listOwned(a);
      await scenario.expire(a, [b]);
      await scenario.one.balance(b);
      await expectHeard(goneOf(a, { how: "expired", subscriptions }), takenOf(b, { from: a, subscriptions }), {
        kind: "nodes",
      });
    });

    it("report a taken lease once, and name the expired node that had it", async () => {
      await scenario.one.takeLease(group, a);
      await scenario.one.takeLease(group, a);
      await scenario.one.takeLease(group, b);
      await expectHeard(takenOf(a, { groupId: group }));
      await scenario.expire(a, [b]);
      await scenario.one.takeLease(group, b);
      const taken = (await listHeard()).filter(({ kind }) => kind === "taken");
      expect(taken).toEqual([takenOf(b, { from: a, groupId: group })]);
    });

    it("report indexed and rolled-back blocks", async () => {
      await scenario.store.applyBlocks(group, [first]);
      await expectHeard({ kind: "index", groupId: group });
      await scenario.store.rollBack(group, undefined);
      await expectHeard({ kind: "index", groupId: group });
    });

    it("report a chain that is ahead of the index", async () => {
      await scenario.one.reportAhead({ groupId: group, blockNumber: 7 });
      await expectHeard({ kind: "ahead", groupId: group, blockNumber: 7 });
    });

    it("never arrive within the call that causes them, nor after listening has ended", async () => {
      const claiming = scenario.one.claim(subscriptionOf(2).id, b);
      expect([...heard]).toEqual([]);
      await claiming;
      await expectHeard(hintOf(2));
      const later: Hint[] = [];
      const endLater = await scenario.one.listen((hint) => later.push(hint));
      await end();
      await scenario.one.claim(subscriptionOf(3).id, b);
      await until(() => later.some((hint) => hint.kind === "subscription"));
      expect([...heard]).toEqual([]);
      await endLater();
    });
  });
}

/** Waits for a condition, since hints may arrive over the network. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}
