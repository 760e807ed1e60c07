import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseGroupId } from "../domain/group-id.ts";
import type { GroupRecord, GroupRecords } from "./group-records.ts";

/** Records with the life of the store that they are part of. */
export type GroupRecordsStore = GroupRecords & { start(): Promise<void>; stop(): Promise<void> };

const group = parseGroupId("1");
const otherGroup = parseGroupId("2");
const record: GroupRecord = {
  chainId: Number.MAX_SAFE_INTEGER,
  genesisHash: `0x${"ab".repeat(32)}`,
  registryAddress: `0x${"cd".repeat(20)}`,
};

/** The guarantees of the GroupRecords port. `create` answers a store that is empty and not started. */
export function testGroupRecords(name: string, create: () => Promise<GroupRecordsStore>): void {
  describe(`${name} keeps the contract of group records`, () => {
    let store: GroupRecordsStore;
    beforeEach(async () => {
      store = await create();
      await store.start();
    });
    afterEach(async () => store.stop());

    it("knows nothing of a group that was not saved", async () => {
      await store.saveGroupRecord(otherGroup, record);
      expect(await store.findGroupRecord(group)).toBeUndefined();
    });

    it("keeps groups apart, and the newest record of each, also after a restart", async () => {
      const moved: GroupRecord = { ...record, chainId: 1, registryAddress: `0x${"ef".repeat(20)}` };
      await store.saveGroupRecord(group, record);
      await store.saveGroupRecord(otherGroup, record);
      await store.saveGroupRecord(group, moved);
      await store.stop();
      await store.start();
      expect(await store.findGroupRecord(group)).toEqual(moved);
      expect(await store.findGroupRecord(otherGroup)).toEqual(record);
    });
  });
}
