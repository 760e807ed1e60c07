import { beforeEach, describe, expect, it } from "vitest";
import type { Address } from "../domain/topic.ts";
import {
  a,
  addressOf,
  b,
  both,
  c,
  type CoordinatorScenario,
  lastsMs,
  nearEndMs,
  nodeIdOf,
  noMember,
} from "./coordinator-scenario.contract.ts";
import { LeaseLostError } from "./store.ts";
import { blockOf, group, otherGroup, subscriptionOf } from "./store-examples.contract.ts";

const sender: Address = `0x${"11".repeat(20)}`;
const first = blockOf(1);
const second = blockOf(2);

/** Membership, group leases and signer reservations. */
export function testMembers(scenario: CoordinatorScenario): void {
  describe("members", () => {
    it("are listed by address on every node once they join", async () => {
      await scenario.join(b);
      await scenario.join(a);
      expect(await scenario.one.join({ id: c, address: "B.example:1" }, lastsMs)).toBe("joined");
      const nodes = await scenario.other.listNodes();
      expect(nodes.map(({ id, address }) => [id, address])).toEqual([
        [a, addressOf(a)],
        [b, addressOf(b)],
        [c, "B.example:1"],
      ]);
      for (const { joinedAt } of nodes) expect(joinedAt).toBeGreaterThan(1_600_000_000_000);
    });

    it("are the only members with their address until they expire", async () => {
      await scenario.join(a);
      await scenario.elapse(lastsMs - nearEndMs);
      expect(await scenario.other.join({ id: b, address: addressOf(a) }, lastsMs)).toBe("taken");
      expect((await scenario.one.listNodes()).map(({ id }) => id)).toEqual([a]);
      await scenario.elapse(nearEndMs);
      expect(await scenario.other.join({ id: b, address: addressOf(a) }, lastsMs)).toBe("joined");
      expect((await scenario.one.listNodes()).map(({ id }) => id)).toEqual([b]);
      expect(await scenario.one.renew(a, { lastsMs, groups: both })).toBe(false);
    });

    it("can repeat a join whose answer was lost", async () => {
      await scenario.join(a);
      expect(await scenario.one.join({ id: a, address: addressOf(a) }, lastsMs)).toBe("joined");
    });

    it("replace an earlier membership of the same node, and free what it held", async () => {
      await scenario.join(a);
      await scenario.join(b);
      await scenario.insert([subscriptionOf(1)]);
      expect(await scenario.one.claim(subscriptionOf(1).id, a)).toMatchObject({ status: "owned" });
      const lease = await scenario.one.takeLease(group, a);
      await scenario.one.reserveSigner({ groupId: group, sender }, a);
      const next = { id: c, address: addressOf(a) };
      expect(await scenario.one.join({ ...next, replaces: [nodeIdOf(4)] }, lastsMs)).toBe("taken");
      expect(await scenario.one.join({ ...next, replaces: [nodeIdOf(4), a] }, lastsMs)).toBe("joined");
      expect((await scenario.other.listNodes()).map(({ id }) => id)).toEqual([c, b]);
      expect(await scenario.other.takeLease(group, b)).toMatchObject({ epoch: (lease?.epoch ?? Number.NaN) + 1 });
      expect(await scenario.one.reserveSigner({ groupId: group, sender }, c)).toBeUndefined();
      expect(await scenario.other.claim(subscriptionOf(1).id, b)).toMatchObject({ status: "owned" });
    });

    it("cannot renew or rejoin after they were replaced, and their late leave has no effect", async () => {
      await scenario.join(a);
      const address = addressOf(a);
      expect(await scenario.one.join({ id: c, address, replaces: [a] }, lastsMs)).toBe("joined");
      expect(await scenario.one.renew(a, { lastsMs, groups: both })).toBe(false);
      expect(await scenario.one.join({ id: a, address, replaces: [nodeIdOf(4)] }, lastsMs)).toBe("taken");
      await scenario.one.leave(a);
      expect((await scenario.one.listNodes()).map(({ id }) => id)).toEqual([c]);
      expect(await scenario.one.renew(c, { lastsMs, groups: both })).toBe(true);
    });

    it("do not replace a node with another address", async () => {
      await scenario.join(a);
      expect(await scenario.one.join({ id: c, address: addressOf(c), replaces: [a] }, lastsMs)).toBe("joined");
      expect((await scenario.one.listNodes()).map(({ id }) => id)).toEqual([a, c]);
    });

    it("include only one of two nodes that join concurrently with the same address", async () => {
      for (let round = 0; round < 10; round += 1) {
        const address = `${round}:1`;
        const joining = [
          scenario.one.join({ id: nodeIdOf(100 + round), address }, lastsMs),
          scenario.other.join({ id: nodeIdOf(200 + round), address }, lastsMs),
        ];
        expect((await Promise.all(joining)).toSorted()).toEqual(["joined", "taken"]);
      }
    });

    it("expire at the time that their latest renewal set", async () => {
      await scenario.join(a);
      await scenario.elapse(lastsMs - nearEndMs);
      expect(await scenario.one.renew(a, { lastsMs: 2 * lastsMs, groups: [] })).toBe(true);
      await scenario.elapse(2 * lastsMs - nearEndMs);
      expect(await scenario.one.listNodes()).toHaveLength(1);
      await scenario.elapse(nearEndMs);
      expect(await scenario.one.listNodes()).toEqual([]);
    });

    it("cannot renew after they expired, and the attempt has no effect", async () => {
      await scenario.join(a);
      await scenario.expire(a);
      expect(await scenario.one.renew(a, { lastsMs, groups: both })).toBe(false);
      expect(await scenario.one.listNodes()).toEqual([]);
      expect(await scenario.one.takeLease(group, a)).toBeUndefined();
      await scenario.join(b);
      await scenario.insert([subscriptionOf(1)]);
      await scenario.one.balance(b);
      expect(await scenario.ownerOf(1)).toMatchObject({ owner: b });
      expect(await scenario.one.renew(a, { lastsMs, groups: both })).toBe(false);
    });

    it("are removed at once when they leave, and cannot renew", async () => {
      await scenario.join(a);
      await scenario.other.leave(a);
      expect(await scenario.one.listNodes()).toEqual([]);
      expect(await scenario.one.renew(a, { lastsMs, groups: both })).toBe(false);
      expect(await scenario.one.join({ id: b, address: addressOf(a) }, lastsMs)).toBe("joined");
      await scenario.one.leave(a);
      await scenario.one.leave(c);
      expect((await scenario.one.listNodes()).map(({ id }) => id)).toEqual([b]);
    });
  });

  describe("a group's lease", () => {
    beforeEach(async () => {
      await scenario.join(a);
      await scenario.join(b);
    });

    it("belongs to one node, which gets the same lease if it asks again", async () => {
      const lease = await scenario.one.takeLease(group, a);
      expect(lease).toMatchObject({ groupId: group, nodeId: a });
      expect(await scenario.one.takeLease(group, a)).toEqual(lease);
      expect(await scenario.other.takeLease(group, b)).toBeUndefined();
      expect(await scenario.other.takeLease(otherGroup, b)).toMatchObject({ groupId: otherGroup, nodeId: b });
    });

    it("is listed while its holder is a live member", async () => {
      expect(await scenario.other.listLeases()).toEqual([]);
      const own = await scenario.one.takeLease(group, a);
      const lease = await scenario.one.takeLease(otherGroup, b);
      expect(await scenario.other.listLeases()).toEqual(
        [own, lease].toSorted((left, right) => ((left?.groupId ?? "") < (right?.groupId ?? "") ? -1 : 1)),
      );
      if (lease !== undefined) await scenario.one.releaseLease(lease);
      expect(await scenario.other.listLeases()).toEqual([own]);
      await scenario.expire(a, [b]);
      expect(await scenario.other.listLeases()).toEqual([]);
    });

    it("goes to one of two nodes that ask concurrently", async () => {
      for (let round = 0; round < 10; round += 1) {
        const lease = await Promise.all([scenario.one.takeLease(group, a), scenario.other.takeLease(group, b)]);
        const [taken, ...more] = lease.filter((lease) => lease !== undefined);
        if (taken === undefined) throw new Error("nobody has the lease");
        expect(more).toEqual([]);
        expect(taken.epoch).toBe(round + 1);
        await scenario.one.releaseLease(taken);
      }
    });

    it("moves from an expired node to another under a higher epoch, and the store refuses the old owner's writes", async () => {
      const old = await scenario.one.takeLease(group, a);
      await scenario.store.applyBlocks(group, [first], { isFinal: false, lease: old });
      await scenario.expire(a, [b]);
      const lease = await scenario.other.takeLease(group, b);
      expect(lease?.epoch).toBeGreaterThan(old?.epoch ?? Number.NaN);
      await expect(scenario.store.applyBlocks(group, [second], { isFinal: false, lease: old })).rejects.toThrow(
        LeaseLostError,
      );
      await expect(scenario.store.rollBack(group, undefined, old)).rejects.toThrow(LeaseLostError);
      expect(await scenario.store.findHead(group)).toMatchObject({ blockNumber: 1 });
      await scenario.store.applyBlocks(group, [second], { isFinal: false, lease });
    });

    it("can be taken after each release, under a higher epoch", async () => {
      const epochs: number[] = [];
      for (const [coordinator, node] of [
        [scenario.one, a],
        [scenario.other, b],
        [scenario.other, b],
        [scenario.one, a],
      ] as const) {
        const lease = await coordinator.takeLease(group, node);
        if (lease === undefined) throw new Error("the lease is not free");
        epochs.push(lease.epoch);
        await coordinator.releaseLease(lease);
      }
      expect(epochs).toEqual([...new Set(epochs)].toSorted((left, right) => left - right));
    });

    it("cannot be released by its former owner", async () => {
      const old = await scenario.one.takeLease(group, a);
      if (old === undefined) throw new Error("the lease is not free");
      await scenario.one.releaseLease(old);
      const lease = await scenario.other.takeLease(group, b);
      await scenario.one.releaseLease(old);
      expect(await scenario.one.takeLease(group, a)).toBeUndefined();
      expect(await scenario.other.takeLease(group, b)).toEqual(lease);
    });

    it("cannot be released under an older epoch", async () => {
      const old = await scenario.one.takeLease(group, a);
      if (old === undefined) throw new Error("the lease is not free");
      await scenario.one.releaseLease(old);
      const lease = await scenario.one.takeLease(group, a);
      await scenario.one.releaseLease(old);
      expect(await scenario.other.takeLease(group, b)).toBeUndefined();
      expect(await scenario.one.takeLease(group, a)).toEqual(lease);
    });

    it("is free when its node leaves, and never goes to a node that is not a member", async () => {
      await scenario.one.takeLease(group, a);
      await scenario.one.leave(a);
      expect(await scenario.one.takeLease(group, a)).toBeUndefined();
      expect(await scenario.one.takeLease(group, c)).toBeUndefined();
      expect(await scenario.other.takeLease(group, b)).toMatchObject({ nodeId: b });
    });
  });

  describe("a signer", () => {
    beforeEach(async () => {
      await scenario.join(a);
      await scenario.join(b);
    });

    it("is reserved for one node per group", async () => {
      expect(await scenario.one.reserveSigner({ groupId: group, sender }, a)).toBeUndefined();
      expect(await scenario.one.reserveSigner({ groupId: group, sender }, a)).toBeUndefined();
      expect(await scenario.other.reserveSigner({ groupId: group, sender }, b)).toMatchObject({
        id: a,
        address: addressOf(a),
      });
      expect(await scenario.one.reserveSigner({ groupId: group, sender }, a)).toBeUndefined();
      expect(await scenario.other.reserveSigner({ groupId: otherGroup, sender }, b)).toBeUndefined();
      expect(await scenario.other.reserveSigner({ groupId: group, sender: `0x${"22".repeat(20)}` }, b)).toBeUndefined();
    });

    it("is reserved for one of two nodes that ask concurrently", async () => {
      for (let round = 0; round < 10; round += 1) {
        const signer = { groupId: group, sender: `0x${round.toString(16).padStart(40, "0")}` } as const;
        const answers = await Promise.all([
          scenario.one.reserveSigner(signer, a),
          scenario.other.reserveSigner(signer, b),
        ]);
        expect(answers.filter((node) => node === undefined)).toHaveLength(1);
      }
    });

    it("is listed with its group while its node is a live member", async () => {
      const [first, second] = [`0x${"11".repeat(20)}`, `0x${"22".repeat(20)}`] as const;
      await scenario.one.reserveSigner({ groupId: group, sender: second }, a);
      await scenario.other.reserveSigner({ groupId: group, sender: first }, b);
      await scenario.one.reserveSigner({ groupId: otherGroup, sender }, a);
      expect(await scenario.other.listSigners(group)).toEqual([first, second]);
      await scenario.one.leave(a);
      expect(await scenario.other.listSigners(group)).toEqual([first]);
      await scenario.join(c);
      await scenario.expire(b, [c]);
      expect(await scenario.one.listSigners(group)).toEqual([]);
    });

    it("is free when its node has left or expired", async () => {
      await scenario.one.reserveSigner({ groupId: group, sender }, a);
      await scenario.one.leave(a);
      expect(await scenario.other.reserveSigner({ groupId: group, sender }, b)).toBeUndefined();
      await scenario.join(c);
      await scenario.expire(b, [c]);
      expect(await scenario.one.reserveSigner({ groupId: group, sender }, c)).toBeUndefined();
      await expect(scenario.one.reserveSigner({ groupId: group, sender }, b)).rejects.toEqual(noMember);
    });
  });
}
