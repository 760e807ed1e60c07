import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type GroupId, parseGroupId } from "../domain/group-id.ts";
import { endOfBlock, positionZero } from "../domain/position.ts";
import { parseTopicName } from "../domain/topic-name.ts";
import { type PublishKeyRow, type PublishKeys, sessionScopeOf, sharedAccountOf, toFencedKey } from "./publish-keys.ts";
import { claimOf, idOf } from "./session-examples.contract.ts";
import type { SessionKey, SessionStore } from "./session-store.ts";

/** Publish keys, the sessions that some belong to, and the lifecycle of their store. */
export type PublishKeyStore = PublishKeys & {
  readonly sessions: Pick<SessionStore, "claimSession">;
  start(): Promise<void>;
  stop(): Promise<void>;
};

const group = parseGroupId("1");
const otherGroup = parseGroupId("2");

/** A row whose key contains the number. */
export const keyRowOf = (number: number, change: Partial<PublishKeyRow> = {}): PublishKeyRow => ({
  groupId: group,
  scope: "",
  key: `key-${number}`,
  token: `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`,
  topic: parseTopicName("orders/eu"),
  after: endOfBlock(number),
  digest: "ab".repeat(32),
  sender: `0x${"11".repeat(20)}`,
  recordedAt: 1_800_000_000_000 + number,
  ...change,
});

/** The guarantees of the PublishKeys port. `create` returns an empty store that is not started. */
export function testPublishKeys(name: string, create: () => Promise<PublishKeyStore>): void {
  describe(`${name} keeps the contract of publish keys`, () => {
    let keys: PublishKeyStore;
    beforeEach(async () => {
      keys = await create();
      await keys.start();
    });
    afterEach(async () => keys.stop());
    const countOf = async (groupId: GroupId): Promise<number> => (await keys.countPublishKeys(groupId, 1)).total;

    it("records free keys and finds them unchanged", async () => {
      const rows = [keyRowOf(1), keyRowOf(2, { after: positionZero, sender: "" })];
      expect(await keys.recordPublishKeys(rows)).toEqual([]);
      for (const row of rows) expect(await keys.findPublishKey(row)).toEqual(row);
      expect(await keys.findPublishKey(keyRowOf(3))).toBeUndefined();
    });

    it("returns the stored row of a key that is taken, and records the other keys of the call", async () => {
      await keys.recordPublishKeys([keyRowOf(2)]);
      const repeat = keyRowOf(2, { token: keyRowOf(9).token, digest: "cd".repeat(32), recordedAt: 5 });
      expect(await keys.recordPublishKeys([keyRowOf(1), repeat, keyRowOf(3)])).toEqual([keyRowOf(2)]);
      expect(await countOf(group)).toBe(3);
      expect(await keys.findPublishKey(repeat)).toEqual(keyRowOf(2));
    });

    it("with mayReplace, takes a key from a row with another digest, but returns a row with the same digest", async () => {
      await keys.recordPublishKeys([keyRowOf(1), keyRowOf(2), keyRowOf(3)]);
      const change = { token: keyRowOf(9).token, digest: "cd".repeat(32), recordedAt: 5 };
      const other = keyRowOf(1, change);
      const same = keyRowOf(2, { ...change, digest: keyRowOf(2).digest });
      const forbidden = keyRowOf(3, change);
      const claims = [...[other, same].map((row) => ({ ...row, mayReplace: true })), forbidden, keyRowOf(4)];
      const taken = await keys.recordPublishKeys(claims);
      expect(new Set(taken)).toEqual(new Set([keyRowOf(2), keyRowOf(3)]));
      expect(await keys.findPublishKey(other)).toEqual(other);
      expect(await keys.findPublishKey(same)).toEqual(keyRowOf(2));
      expect(await countOf(group)).toBe(4);
    });

    // The answer to an earlier call may have been lost.
    it("counts a stored row with the same token as recorded", async () => {
      await keys.recordPublishKeys([keyRowOf(1)]);
      expect(await keys.recordPublishKeys([keyRowOf(1)])).toEqual([]);
    });

    it("counts keys in all and by scope, omits scopes with few keys, and drops the keys of one scope", async () => {
      const rows = [1, 2, 3].map((number) => keyRowOf(number, { scope: "many" }));
      await keys.recordPublishKeys([...rows, keyRowOf(4, { scope: "few" })]);
      await keys.recordPublishKeys([keyRowOf(5, { scope: "many", groupId: otherGroup })]);
      expect(await keys.countPublishKeys(group, 2)).toEqual({ total: 4, byAccount: new Map([["many", 3]]) });
      await keys.dropPublishKeys(group, "many");
      expect(await keys.countPublishKeys(group, 1)).toEqual({ total: 1, byAccount: new Map([["few", 1]]) });
      expect(await countOf(otherGroup)).toBe(1);
    });

    it("counts the keys of a tenant, however few each of its principals has", async () => {
      const principals = ["acme/shop", "acme_x", "acmes", "acme/till", "acme/u", "acme/u", "globex/shop", "acme"];
      await keys.recordPublishKeys(principals.map((name, index) => keyRowOf(index, { scope: `principal ${name}` })));
      const byAccount = new Map([["principal acme/", 4]]);
      expect(await keys.countPublishKeys(group, 3)).toEqual({ total: 8, byAccount });
    });

    it("counts the keys of all sessions, however few each has", async () => {
      const scopes = ["a", "b", "b", "c"].map(sessionScopeOf);
      await keys.recordPublishKeys([...scopes, "sessions"].map((scope, index) => keyRowOf(index, { scope })));
      const byAccount = new Map([[sharedAccountOf(sessionScopeOf("a")), 4]]);
      expect(await keys.countPublishKeys(group, 3)).toEqual({ total: 5, byAccount });
    });

    it("counts tens of thousands of keys, also of a scope", async () => {
      const scopes = [
        ...Array<string>(20).fill("a"),
        ...Array<string>(19_990).fill("b"),
        ...Array<string>(5).fill("c"),
      ];
      const rows = scopes.map((scope, index) => keyRowOf(index, { scope }));
      await keys.recordPublishKeys(rows);
      const byAccount = new Map([
        ["a", 20],
        ["b", 19_990],
      ]);
      expect(await keys.countPublishKeys(group, 10)).toEqual({ total: 20_015, byAccount });
    });

    it("keeps equal keys of different groups and scopes apart", async () => {
      const rows = [
        keyRowOf(1),
        keyRowOf(1, { groupId: otherGroup, token: keyRowOf(2).token }),
        keyRowOf(1, { scope: "alice", token: keyRowOf(3).token }),
      ];
      expect(await keys.recordPublishKeys(rows)).toEqual([]);
      for (const row of rows) expect(await keys.findPublishKey(row)).toEqual(row);
      expect([await countOf(group), await countOf(otherGroup)]).toEqual([2, 1]);
    });

    it("records a key for one of two concurrent calls, and returns the row to the other", async () => {
      const first = Array.from({ length: 20 }, (_, index) => keyRowOf(index));
      const second = first.map((row, index) => ({ ...row, token: keyRowOf(100 + index).token })).toReversed();
      const taken = (await Promise.all([keys.recordPublishKeys(first), keys.recordPublishKeys(second)])).flat();
      expect(taken).toHaveLength(20);
      for (const row of taken) expect(await keys.findPublishKey(row)).toEqual(row);
    });

    it("changes the sender of a key only if its token and sender match", async () => {
      await keys.recordPublishKeys([keyRowOf(1)]);
      expect(await keys.movePublishKey(keyRowOf(1, { token: keyRowOf(2).token }), "0xb")).toBe(false);
      expect(await keys.movePublishKey(keyRowOf(1, { sender: "0xc" }), "0xb")).toBe(false);
      expect(await keys.movePublishKey(keyRowOf(7), "0xb")).toBe(false);
      expect(await keys.movePublishKey(keyRowOf(1), "0xb")).toBe(true);
      expect(await keys.movePublishKey(keyRowOf(1), "0xc")).toBe(false);
      expect(await keys.findPublishKey(keyRowOf(1))).toEqual(keyRowOf(1, { sender: "0xb" }));
    });

    it("releases a key only if its token and sender match", async () => {
      await keys.recordPublishKeys([keyRowOf(1), keyRowOf(2), keyRowOf(3)]);
      await keys.releasePublishKeys([
        keyRowOf(1),
        keyRowOf(2, { token: keyRowOf(9).token }),
        keyRowOf(3, { sender: "0xb" }),
        keyRowOf(8),
      ]);
      await keys.releasePublishKeys([]);
      expect(await keys.findPublishKey(keyRowOf(1))).toBeUndefined();
      expect(await keys.findPublishKey(keyRowOf(2))).toEqual(keyRowOf(2));
      expect(await keys.findPublishKey(keyRowOf(3))).toEqual(keyRowOf(3));
      expect(await countOf(group)).toBe(2);
    });

    it("records and releases the keys of a session only while the session has the epoch of their fence", async () => {
      const begun = await keys.sessions.claimSession(claimOf({ position: positionZero }));
      const first: SessionKey = { id: idOf(1), epoch: claimOf().newEpoch };
      expect(begun.status).toBe("begun");
      const unknown = { id: idOf(2), epoch: first.epoch };
      const claims = [
        { ...keyRowOf(1), fence: first },
        { ...keyRowOf(2), fence: unknown },
        keyRowOf(3),
        { ...keyRowOf(4), fence: { ...first, epoch: first.epoch + 1 } },
      ];
      const refused = await keys.recordPublishKeys(claims);
      expect(refused).toHaveLength(2);
      expect(refused).toEqual(expect.arrayContaining([toFencedKey(keyRowOf(2)), toFencedKey(keyRowOf(4))]));
      expect(await keys.findPublishKey(keyRowOf(1))).toEqual(keyRowOf(1));
      expect(await countOf(group)).toBe(2);
      await keys.sessions.claimSession(claimOf({ position: positionZero }));
      const held = [{ ...keyRowOf(1), fence: first }, keyRowOf(3)];
      expect(await keys.releasePublishKeys(held)).toEqual([toFencedKey(keyRowOf(1))]);
      expect(await countOf(group)).toBe(1);
      expect(await keys.recordPublishKeys([{ ...keyRowOf(1), fence: first }])).toEqual([toFencedKey(keyRowOf(1))]);
      const second = { ...keyRowOf(1), fence: { ...first, epoch: first.epoch + 1 } };
      expect(await keys.recordPublishKeys([second])).toEqual([]);
      expect(await keys.releasePublishKeys([second])).toEqual([]);
      expect(await countOf(group)).toBe(0);
    });

    it("expires the oldest rows of one group in pages", async () => {
      const rows = Array.from({ length: 10 }, (_, index) => keyRowOf(index));
      await keys.recordPublishKeys([...rows, keyRowOf(0, { groupId: otherGroup, token: keyRowOf(99).token })]);
      const before = keyRowOf(5).recordedAt;
      expect(await keys.expirePublishKeys(group, { before, atMost: 3 })).toBe(3);
      expect(await keys.findPublishKey(keyRowOf(2))).toBeUndefined();
      expect(await keys.findPublishKey(keyRowOf(3))).toEqual(keyRowOf(3));
      expect(await keys.expirePublishKeys(group, { before, atMost: 3 })).toBe(2);
      expect(await keys.expirePublishKeys(group, { before, atMost: 3 })).toBe(0);
      expect([await countOf(group), await countOf(otherGroup)]).toEqual([5, 1]);
    });

    it("records more keys in one call than one statement has parameters, and keeps them over a restart", async () => {
      const rows = Array.from({ length: 5_000 }, (_, index) => keyRowOf(index));
      await keys.recordPublishKeys(rows);
      expect(await keys.recordPublishKeys(rows.map((row) => ({ ...row, token: "other" })))).toHaveLength(5_000);
      await keys.stop();
      await keys.start();
      expect(await countOf(group)).toBe(5_000);
      expect(await keys.findPublishKey(keyRowOf(4_999))).toEqual(keyRowOf(4_999));
      await keys.releasePublishKeys(rows);
      expect(await countOf(group)).toBe(0);
    });
  });
}
