import { beforeEach, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { type Known, toOwnerId } from "./caller.ts";
import { Quotas } from "./quotas.ts";
import { RuleSet } from "./rule-set.ts";
import { CountedOpening, TopicQuota, unknownCountedMs } from "./topic-quota.ts";

const principal: Known = {
  kind: "known",
  id: toOwnerId("shop", "acme"),
  tenant: "acme",
  rules: new RuleSet([]),
  expiresAt: undefined,
  keyId: undefined,
};

let clock: VirtualClock;
let quota: TopicQuota;
beforeEach(() => {
  clock = new VirtualClock();
  const quotas = new Quotas({ tenants: { acme: { topics: 1 } }, principals: {} }, clock);
  // The index never gets a topic: every opening fails.
  quota = new TopicQuota({ quotas, store: { countTopics: async () => 0 }, groupIds: [defaultGroupId], clock });
});

const reserve = (name: string) => quota.reserve({ principal }, { groupId: defaultGroupId, name });
const refusal = { code: 200_301 };

it("counts an opening until it has failed", async () => {
  const end = await reserve("acme/a");
  await expect(reserve("acme/b")).rejects.toMatchObject(refusal);
  end("known");
  await reserve("acme/b");
});

it("counts the opening of a publish until the publish is refused, and longer if its outcome is unknown", async () => {
  for (const status of ["REFUSED", "TIMEOUT"] as const) {
    const opening = new CountedOpening();
    await opening.begin(reserve(`acme/${status}`));
    await expect(reserve("acme/b")).rejects.toMatchObject(refusal);
    opening.settled({ status });
  }
  await clock.advance(unknownCountedMs - 1);
  await expect(reserve("acme/b")).rejects.toMatchObject(refusal);
  await clock.advance(1);
  await reserve("acme/b");
});

it("counts a topic once, however many calls open it, until the last one has ended", async () => {
  const excepted: (readonly string[])[] = [];
  const countTopics = async (_group: string, _prefix: string, names: readonly string[] = []) => {
    excepted.push(names);
    return 0;
  };
  const quotas = new Quotas({ tenants: { acme: { topics: 2 } }, principals: {} }, clock);
  quota = new TopicQuota({ quotas, store: { countTopics }, groupIds: [defaultGroupId], clock });
  const ends = [await reserve("acme/a"), await reserve("acme/a"), await reserve("acme/a")];
  const end = await reserve("acme/b");
  expect(excepted.at(-1)).toEqual(["acme/a"]);
  for (const one of ends.slice(0, 2)) one("known");
  await expect(reserve("acme/c")).rejects.toMatchObject(refusal);
  ends.at(-1)?.("known");
  end("known");
  await reserve("acme/c");
  expect(excepted.at(-1)).toEqual([]);
});
