import { type ErrorName, errorCatalogue } from "@stele/wire";
import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { TestEngine } from "../testing/test-engine.ts";

const refusal = (name: ErrorName): unknown => expect.objectContaining({ code: errorCatalogue[name].code });
const skippedEntries = Array.from({ length: 150 }, (_, logIndex) => ({
  code: "wrong-root" as const,
  reason: "root 0x01 where 0x02 was claimed",
  address: "0x00000000000000000000000000000000000000aa" as const,
  blockNumber: 0,
  transactionHash: "0x01" as const,
  logIndex,
}));

async function fill(): Promise<TestEngine> {
  const engine = new TestEngine();
  const block = {
    number: 0,
    hash: "0x02",
    opened: [],
    closed: [],
    batches: [],
    skippedSequences: [],
    skippedEntries,
  } as const;
  await engine.store.applyBlocks(defaultGroupId, [block]);
  return engine;
}

it("returns the newest 100 entries by default, newest first, also for a group that is not up", async () => {
  const { broker } = await fill();
  const { groupId, entries } = await broker.listSkippedEntries({ groupId: undefined, limit: undefined });
  expect(groupId).toBe(defaultGroupId);
  expect(entries).toEqual(skippedEntries.toReversed().slice(0, 100));
  expect((await broker.listSkippedEntries({ groupId: "1", limit: "1" })).entries).toEqual(skippedEntries.slice(-1));
  expect((await broker.listSkippedEntries({ groupId: "1", limit: "10000" })).entries).toHaveLength(150);
});

it.each(["0", "", "-1", "1.5", "x", "10001", "999999"])("refuses the limit %j", async (limit) => {
  const { broker } = await fill();
  await expect(broker.listSkippedEntries({ groupId: "1", limit })).rejects.toEqual(refusal("parameterInvalid"));
});

it("refuses an unknown group", async () => {
  const { broker } = await fill();
  const call = broker.listSkippedEntries({ groupId: "nowhere", limit: undefined });
  await expect(call).rejects.toEqual(refusal("groupUnknown"));
});
