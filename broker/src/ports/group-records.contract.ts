import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseGroupId } from "../domain/group-id.ts";
import type { GroupRecord, GroupRecords, WriterSet } from "./group-records.ts";

/** Records, and the lifecycle of their store. */
export type GroupRecordsStore = GroupRecords & { start(): Promise<void>; stop(): Promise<void> };

const group = parseGroupId("1");
const otherGroup = parseGroupId("2");
const record: GroupRecord = {
  chainId: Number.MAX_SAFE_INTEGER,
  genesisHash: `0x${"ab".repeat(32)}`,
  registryAddress: `0x${"cd".repeat(20)}`,
};
const other: GroupRecord = { ...record, chainId: 1, registryAddress: `0x${"ef".repeat(20)}` };
const set = (number: number): WriterSet => ({ number, owner: record.registryAddress });

/** The guarantees of the GroupRecords port. `create` returns an empty store that is not started. */
export function testGroupRecords(name: string, create: () => Promise<GroupRecordsStore>): void {
  describe(`${name} keeps the contract of group records`, () => {
    let store: GroupRecordsStore;
    beforeEach(async () => {
      store = await create();
      await store.start();
    });
    afterEach(async () => store.stop());

    it("returns nothing for an unknown group", async () => {
      await store.saveGroupRecord(otherGroup, record);
      expect(await store.findGroupRecord(group)).toBeUndefined();
    });

    it("keeps the first record of each group, even after a restart", async () => {
      expect(await store.saveGroupRecord(group, record)).toEqual(record);
      expect(await store.saveGroupRecord(otherGroup, other)).toEqual(other);
      expect(await store.saveGroupRecord(group, other)).toEqual(record);
      await store.stop();
      await store.start();
      expect(await store.findGroupRecord(group)).toEqual(record);
      expect(await store.findGroupRecord(otherGroup)).toEqual(other);
      expect(await store.saveGroupRecord(group, other)).toEqual(record);
    });

    it("keeps the first set of writers of each group that has a record, even after a restart", async () => {
      expect(await store.saveWriters(group, set(3))).toBeUndefined();
      await store.saveGroupRecord(group, record);
      await store.saveGroupRecord(otherGroup, other);
      const kept = await Promise.all([store.saveWriters(group, set(3)), store.saveWriters(group, set(4))]);
      expect(kept).toEqual([kept[0], kept[0]]);
      await store.stop();
      await store.start();
      expect(await store.saveWriters(group, set(5))).toEqual(kept[0]);
      expect(await store.findGroupRecord(group)).toEqual({ ...record, writers: kept[0] });
      expect(await store.saveGroupRecord(group, other)).toEqual({ ...record, writers: kept[0] });
      expect(await store.findGroupRecord(otherGroup)).toEqual(other);
    });

    it("replaces the stored set of writers only if the call passes that set as the former one", async () => {
      await store.saveGroupRecord(group, record);
      expect(await store.saveWriters(group, set(3), set(2))).toEqual(set(3));
      const sameNumber = { ...set(3), owner: other.registryAddress };
      expect(await store.saveWriters(group, set(4), sameNumber)).toEqual(set(3));
      const kept = await Promise.all([set(5), set(6)].map((one) => store.saveWriters(group, one, set(3))));
      expect([set(5), set(6)]).toContainEqual(kept[0]);
      expect(kept).toEqual([kept[0], kept[0]]);
    });

    it("returns the same record to concurrent callers", async () => {
      const records = Array.from({ length: 8 }, (_, index) => ({ ...record, chainId: index }));
      const kept = await Promise.all(records.map((one) => store.saveGroupRecord(group, one)));
      const found = await store.findGroupRecord(group);
      expect(records).toContainEqual(found);
      expect(kept).toEqual(records.map(() => found));
    });
  });
}
