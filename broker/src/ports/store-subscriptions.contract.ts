import { expect, it } from "vitest";
import type { NodeId } from "../domain/node.ts";
import { blockNumberMax, endOfBlock, type Position, positionZero, toPosition } from "../domain/position.ts";
import type { StoredQuota } from "../domain/quota.ts";
import { nothingFailed, type Subscription } from "../domain/subscription.ts";
import { parseTopicFilter } from "../domain/topic-filter.ts";
import type { Progress, Store } from "./store.ts";
import { group, hashOf, history, otherGroup, sessionOf, subscriptionOf, webhookTo } from "./store-examples.contract.ts";

const node = "00000000-0000-4000-9000-000000000001" as NodeId; // Any UUID is valid.

/** The store's guarantees about subscriptions, except their progress. */
export function testSubscriptions(store: () => Store): void {
  it("returns a subscription unchanged", async () => {
    const given = [
      subscriptionOf(1),
      subscriptionOf(2, { delivery: sessionOf("MQTT"), state: "suspended" }),
      subscriptionOf(3, {
        filter: parseTopicFilter("'%_\u0080/+/\"/#"),
        groupId: otherGroup,
        cursor: endOfBlock(blockNumberMax),
        owner: node,
        epoch: Number.MAX_SAFE_INTEGER,
      }),
    ];
    for (const subscription of given) expect(await store().insertSubscription(subscription, 0)).toBe("inserted");
    for (const subscription of given) expect(await store().findSubscription(subscription.id)).toEqual(subscription);
    expect(await store().listSubscriptions()).toEqual(given);
  });
  it("refuses a second subscription with the same identifier, and changes nothing", async () => {
    await store().insertSubscription(subscriptionOf(1), 0);
    expect(
      await store().insertSubscription(subscriptionOf(1, { delivery: webhookTo({ url: "http://other/" }) }), 0),
    ).toBe("taken");
    expect(await store().listSubscriptions()).toEqual([subscriptionOf(1)]);
  });
  it("returns the principal unchanged, and an update without a principal keeps it", async () => {
    const owned = subscriptionOf(1, { principal: "acme/billing" });
    await store().insertSubscription(owned, 0);
    await store().insertSubscription(subscriptionOf(2), 0);
    const change = { delivery: webhookTo({ url: "http://new/" }), state: "active" } as const;
    expect(await store().updateSubscription(owned, change)).toBe(true);
    expect(await store().updateSubscription(subscriptionOf(2), { ...change, principal: "acme/new" })).toBe(true);
    const rows = await store().listSubscriptions();
    expect(rows.map(({ state, principal }) => [state, principal])).toEqual([
      ["active", "acme/billing"],
      ["active", "acme/new"],
    ]);
  });
  it("an update changes delivery and state under the next epoch, and clears failures", async () => {
    await store().insertSubscription(subscriptionOf(1), 0);
    await store().insertSubscription(subscriptionOf(2), 0);
    const delivery = webhookTo({ url: "http://new/", format: "JsonRPC", secret: undefined });
    const change = { delivery, state: "suspended" } as const;
    expect(await store().updateSubscription(subscriptionOf(1), { ...subscriptionOf(9), ...change })).toBe(true);
    const changed = { ...subscriptionOf(1), ...change, ...nothingFailed, epoch: 1 };
    expect(await store().listSubscriptions()).toEqual([changed, subscriptionOf(2)]);
    expect(await store().setSubscriptionState(changed, "active")).toBe(true);
    expect(await store().findSubscription(subscriptionOf(1).id)).toMatchObject({ state: "active", delivery });
  });
  it("changes of a missing subscription return false", async () => {
    const { id, ...change } = subscriptionOf(1);
    expect(await store().updateSubscription({ id, epoch: 0 }, change)).toBe(false);
    expect(await store().setSubscriptionState({ id, epoch: 0 }, "suspended")).toBe(false);
    expect(await store().deleteSubscription({ id, epoch: 0 })).toBe(false);
    expect(await store().findSubscription(id)).toBeUndefined();
    expect(await store().listSubscriptions()).toEqual([]);
  });
  it("deletes a subscription once, after which it can be created again", async () => {
    await store().insertSubscription(subscriptionOf(1), 0);
    expect(await store().deleteSubscription(subscriptionOf(1))).toBe(true);
    expect(await store().deleteSubscription(subscriptionOf(1))).toBe(false);
    expect(await store().insertSubscription(subscriptionOf(1), 0)).toBe("inserted");
  });
  testQuotas(store);
  testMany(store);
  testGenerations(store);
  testEpochs(store);
}

const bounded = (of: StoredQuota["of"], name: string, max: number): StoredQuota => {
  return { of, name, what: "subscriptions", max };
};

const of = (number: number, principal: string, url = "http://a/") =>
  subscriptionOf(number, { principal, delivery: webhookTo({ url }) });

function testQuotas(store: () => Store): void {
  const ofShop = bounded("principal", "acme/shop", 2);
  const ofAcme = bounded("tenant", "acme", 3);
  it("refuses a subscription above the quota of its owner or tenant, and counts no other owners", async () => {
    const outcomes = [];
    const owners = ["acme/shop", "acme/shop", "acme/shop", "acme/bill", "acme/bill", "acme0/x", "acme", "acme-x/y"];
    for (const [index, owner] of owners.entries()) {
      const quotas = owner.startsWith("acme/") ? [ofShop, ofAcme].slice(owner === "acme/shop" ? 0 : 1) : [];
      outcomes.push(await store().insertSubscription(of(index + 1, owner), 0, quotas));
    }
    const [tooManyOfShop, tooManyOfAcme] = [ofShop, ofAcme].map((quota) => ({ status: "over-quota", quota }));
    const inserted = "inserted";
    expect(outcomes).toEqual([
      inserted,
      inserted,
      tooManyOfShop,
      inserted,
      tooManyOfAcme,
      inserted,
      inserted,
      inserted,
    ]);
    expect(await store().countSubscriptions()).toBe(6);
    await store().deleteSubscription(of(1, "acme/shop"));
    expect(await store().insertSubscription(of(3, "acme/shop"), 0, [ofShop, ofAcme])).toBe("inserted");
  });

  it("answers taken for an identifier that exists, even when a quota is full", async () => {
    expect(await store().insertSubscription(of(1, "acme/shop"), 0, [bounded("tenant", "acme", 1)])).toBe("inserted");
    expect(await store().insertSubscription(of(1, "acme/shop"), 0, [bounded("tenant", "acme", 1)])).toBe("taken");
  });

  it("keeps a quota exactly under a hundred concurrent inserts", async () => {
    const quota = bounded("tenant", "acme", 10);
    const inserts = Array.from({ length: 100 }, (_, index) =>
      store().insertSubscription(of(index + 1, `acme/p${index % 7}`), 0, [quota]),
    );
    const outcomes = await Promise.all(inserts);
    expect(outcomes.filter((outcome) => outcome === "inserted")).toHaveLength(10);
    expect(outcomes.filter((outcome) => typeof outcome === "object")).toHaveLength(90);
    expect(await store().countSubscriptions()).toBe(10);
  });

  it("counts each callback host once against the quota of hosts, even when an update changes a url", async () => {
    const quota: StoredQuota = { of: "tenant", name: "acme", what: "callbackHosts", max: 2 };
    const refused = { status: "over-quota", quota };
    const insert = (number: number, url: string) =>
      store().insertSubscription(of(number, "acme/shop", url), 0, [quota]);
    expect(await insert(1, "http://a/1")).toBe("inserted");
    expect(await insert(2, "http://a/2")).toBe("inserted");
    expect(await insert(3, "http://b/")).toBe("inserted");
    expect(await insert(4, "http://c/")).toEqual(refused);
    const move = (number: number, url: string) =>
      store().updateSubscription(of(number, "acme/shop"), { delivery: webhookTo({ url }), state: "active" }, [quota]);
    expect(await move(1, "http://c/")).toEqual(refused);
    expect(await move(1, "http://b/")).toBe(true);
    expect(await move(2, "http://c/")).toBe(true);
  });
}

function testMany(store: () => Store): void {
  it("lists subscriptions by identifier, all or in pages", async () => {
    const given = [1, 2, 3, 4, 5].map((number) => subscriptionOf(number, { createdAt: 10 - number }));
    for (const subscription of given.toReversed()) await store().insertSubscription(subscription, 0);
    expect(await store().listSubscriptions()).toEqual(given);
    const page = async (after: Subscription | undefined) => store().listSubscriptions({ after: after?.id, limit: 2 });
    expect(await page(undefined)).toEqual(given.slice(0, 2));
    expect(await page(given[1])).toEqual(given.slice(2, 4));
    await store().deleteSubscription(subscriptionOf(4));
    expect(await page(given[3])).toEqual(given.slice(4));
    expect(await page(given[4])).toEqual([]);
  });
  it("counts subscriptions", async () => {
    expect(await store().countSubscriptions()).toBe(0);
    for (const number of [1, 2, 3]) await store().insertSubscription(subscriptionOf(number), 0);
    await store().insertSubscription(subscriptionOf(3), 0);
    await store().deleteSubscription(subscriptionOf(2));
    expect(await store().countSubscriptions()).toBe(2);
  });
  it("counts subscriptions by receiver, however the url is spelled", async () => {
    const urls = ["http://one.example/a", "HTTP://One.example:80/b?c", "http://two.example/", ""];
    const given = urls.map((url, index) => subscriptionOf(index + 1, { delivery: webhookTo({ url }) }));
    for (const subscription of given) await store().insertSubscription(subscription, 0);
    const counts = async () => [
      await store().countSubscriptionsTo("http://one.example"),
      await store().countSubscriptionsTo("http://two.example"),
    ];
    expect(await counts()).toEqual([2, 1]);
    const [first, second] = given;
    if (first === undefined || second === undefined) throw new Error("two subscriptions are given");
    await store().updateSubscription(first, { ...first, delivery: webhookTo({ url: "http://two.example/a" }) });
    expect(await counts()).toEqual([1, 2]);
    await store().deleteSubscription(second);
    expect(await counts()).toEqual([0, 2]);
  });
  it("finds the existing subscriptions among 40,000 identifiers", async () => {
    const given = [1, 20_000, 39_999].map((number) => subscriptionOf(number));
    for (const subscription of [...given, subscriptionOf(40_001)]) await store().insertSubscription(subscription, 0);
    const ids = Array.from({ length: 40_000 }, (_, index) => subscriptionOf(index + 1).id);
    const found = await store().findSubscriptions(ids);
    expect(found.toSorted((left, right) => left.createdAt - right.createdAt)).toEqual(given);
    expect(await store().findSubscriptions(ids.slice(1, 9))).toEqual([]);
    expect(await store().findSubscriptions([])).toEqual([]);
  });
}

function testGenerations(store: () => Store): void {
  const insert = async (number: number, generation: number, changes: Parameters<typeof subscriptionOf>[1] = {}) =>
    store().insertSubscription(subscriptionOf(number, changes), generation);
  it("does not insert a subscription whose cursor was read before a rollback", async () => {
    await store().applyBlocks(group, history);
    await store().rollBack(group, { number: 2, hash: hashOf(2) });
    expect(await insert(1, 0)).toBe("rolled-back");
    expect(await store().findSubscription(subscriptionOf(1).id)).toBeUndefined();
    expect(await insert(1, 1)).toBe("inserted");
    await store().rollBack(group, undefined);
    expect(await insert(2, 1)).toBe("rolled-back");
    await store().applyBlocks(group, history);
    expect(await insert(2, 1)).toBe("rolled-back");
    expect(await insert(2, 2)).toBe("inserted");
    expect(await insert(3, 0, { groupId: otherGroup })).toBe("inserted");
    expect(await store().countSubscriptions()).toBe(3);
  });
  it("a group without an index is at the first generation until a rollback", async () => {
    expect(await insert(1, 1)).toBe("rolled-back");
    expect(await insert(1, 0)).toBe("inserted");
    await store().rollBack(group, undefined);
    expect(await insert(2, 0)).toBe("rolled-back");
  });
  it("each of many concurrent inserts has its own outcome", async () => {
    await store().applyBlocks(group, history);
    await store().rollBack(group, undefined);
    const outcomes = await Promise.all([
      insert(1, 1),
      insert(2, 1),
      insert(3, 0),
      insert(2, 1, { delivery: webhookTo({ url: "http://other/" }) }),
      insert(4, 0, { cursor: positionZero }),
      insert(5, 0, { groupId: otherGroup }),
      insert(6, 1, { groupId: otherGroup }),
      insert(7, 1),
    ]);
    const expected = [
      "inserted",
      "inserted",
      "rolled-back",
      "taken",
      "inserted",
      "inserted",
      "rolled-back",
      "inserted",
    ];
    expect(outcomes.map(String).toSorted()).toEqual(expected.toSorted());
    expect(new Set([outcomes[1], outcomes[3]])).toEqual(new Set(["inserted", "taken"]));
    outcomes[3] = "taken"; // Either of the two may come first.
    outcomes[1] = "inserted";
    expect(outcomes).toEqual(expected);
    const made = await store().listSubscriptions();
    expect(made.map(({ id }) => id)).toEqual([1, 2, 4, 5, 7].map((number) => subscriptionOf(number).id));
  });
  it("inserts a subscription whose cursor is before every event, even if the given generation is old", async () => {
    await store().applyBlocks(group, history);
    await store().rollBack(group, undefined);
    expect(await insert(1, 0, { cursor: positionZero })).toBe("inserted");
    expect(await insert(1, 0, { cursor: positionZero })).toBe("taken");
  });
}

function testEpochs(store: () => Store): void {
  it.each([4, 6])("a write under epoch %i to a subscription at epoch 5 changes nothing", async (epoch) => {
    const kept = subscriptionOf(1, { owner: node, epoch: 5 });
    await store().insertSubscription(kept, 0);
    const key = { id: kept.id, epoch };
    const delivery = webhookTo({ url: "http://new/", format: "JsonRPC", secret: undefined });
    const change = { delivery, state: "suspended" } as const;
    expect(await store().updateSubscription(key, change)).toBe(false);
    expect(await store().setSubscriptionState(key, "suspended")).toBe(false);
    expect(await store().deleteSubscription(key)).toBe(false);
    expect(await store().saveProgress([{ ...progress(1, toPosition(5, 0)), epoch }])).toEqual([kept.id]);
    expect(await store().listSubscriptions()).toEqual([kept]);
  });
  it("a write under the current epoch succeeds, and keeps the owner; only an update gives the row the next epoch", async () => {
    const kept = subscriptionOf(1, { owner: node, epoch: 5 });
    await store().insertSubscription(kept, 0);
    const moved = { ...progress(1, toPosition(5, 0)), epoch: 5 };
    expect(await store().saveProgress([moved])).toEqual([]);
    expect(await store().setSubscriptionState(kept, "suspended")).toBe(true);
    const delivery = webhookTo({ url: "http://new/" });
    expect(await store().updateSubscription(kept, { ...kept, delivery })).toBe(true);
    const updated = { ...kept, ...moved, ...nothingFailed, delivery, epoch: 6 };
    expect(await store().findSubscription(kept.id)).toEqual(updated);
    expect(await store().saveProgress([{ ...progress(1, toPosition(6, 0)), epoch: 5 }])).toEqual([kept.id]);
    expect(await store().deleteSubscription(updated)).toBe(true);
  });
}

/** The store's guarantees about progress. */
export function testProgress(store: () => Store): void {
  it("moves cursors only forward, and returns the identifiers of missing subscriptions", async () => {
    for (const number of [1, 2, 3]) await store().insertSubscription(subscriptionOf(number), 0);
    const refused = await store().saveProgress([
      progress(4, toPosition(9, 0)),
      progress(3, toPosition(1, 0)),
      progress(1, toPosition(5, 0)),
      progress(2, toPosition(2, 7)),
    ]);
    expect(refused).toEqual([subscriptionOf(4).id]);
    const moved = { ...subscriptionOf(1), ...progress(1, toPosition(5, 0)) };
    expect(await store().listSubscriptions()).toEqual([moved, subscriptionOf(2), subscriptionOf(3)]);
    expect(await store().saveProgress([progress(1, toPosition(4, 0))])).toEqual([]);
    expect(await store().findSubscription(moved.id)).toEqual(moved);
  });
  it("keeps how long the event after the cursor has failed, until the cursor moves", async () => {
    await store().insertSubscription(
      subscriptionOf(1, { failedAttempts: 0, failedMs: 0, failingSince: 0, retryAt: 0 }),
      0,
    );
    const { id, cursor } = subscriptionOf(1);
    const failing = async (attempts: number, failedMs: number) => {
      const rows = [{ ...progress(1, cursor), notifiedCount: 1, failedAttempts: attempts, failedMs }];
      expect(await store().saveProgress(rows)).toEqual([]);
      const { failedAttempts, failedMs: keptMs } = (await store().findSubscription(id)) ?? {};
      return [failedAttempts, keptMs];
    };
    expect(await failing(2, 3_000)).toEqual([2, 3_000]);
    expect(await failing(1, 1_000)).toEqual([2, 3_000]);
    expect(await failing(900, 259_200_000)).toEqual([900, 259_200_000]);
    await store().setSubscriptionState({ id, epoch: 0 }, "suspended");
    expect(await store().findSubscription(id)).toMatchObject({ failedAttempts: 900, failedMs: 259_200_000 });
    await store().saveProgress([progress(1, toPosition(2, 0))]);
    expect(await store().findSubscription(id)).toMatchObject({
      failedAttempts: 0,
      failedMs: 0,
      failingSince: 0,
      retryAt: 0,
    });
  });
  it.each(["failedMs", "failingSince", "retryAt"] as const)("keeps a failure with a later %s", async (name) => {
    const { id, cursor } = subscriptionOf(1);
    const known = { failedAttempts: 1, failedMs: 3_000, failingSince: 3_000, retryAt: 3_000 };
    await store().insertSubscription(subscriptionOf(1, known), 0);
    const earlier = { failedAttempts: 2, failedMs: 2_000, failingSince: 2_000, retryAt: 2_000 };
    await store().saveProgress([{ ...progress(1, cursor), ...earlier }]);
    expect(await store().findSubscription(id)).toMatchObject(known);
    const later = { ...earlier, [name]: 4_000 };
    await store().saveProgress([{ ...progress(1, cursor), ...later }]);
    expect(await store().findSubscription(id)).toMatchObject(later);
  });
  it("saveProgress accepts an empty list, and thousands of rows", async () => {
    expect(await store().saveProgress([])).toEqual([]);
    const numbers = Array.from({ length: 3000 }, (_, index) => index + 1);
    for (const number of numbers.slice(0, 5)) await store().insertSubscription(subscriptionOf(number), 0);
    const refused = await store().saveProgress(numbers.map((number) => progress(number, endOfBlock(number))));
    expect(refused.toSorted()).toEqual(numbers.slice(5).map((number) => subscriptionOf(number).id));
    const cursors = (await store().listSubscriptions()).map((subscription) => subscription.cursor);
    expect(cursors).toEqual([1, 2, 3, 4, 5].map((number) => endOfBlock(number)));
  });
  it("refuses rows with another epoch, and writes the others", async () => {
    for (const number of [1, 2, 3]) await store().insertSubscription(subscriptionOf(number, { epoch: number }), 0);
    const given = [1, 2, 3].map((number) => ({ ...progress(number, toPosition(9, number)), epoch: 2 }));
    expect((await store().saveProgress(given)).toSorted()).toEqual([subscriptionOf(1).id, subscriptionOf(3).id]);
    const cursors = (await store().listSubscriptions()).map(({ cursor }) => cursor);
    expect(cursors).toEqual([toPosition(1, 7), toPosition(9, 2), toPosition(3, 7)]);
  });
}

function progress(number: number, cursor: Position): Progress {
  return {
    id: subscriptionOf(number).id,
    epoch: 0,
    cursor,
    notifiedCount: 100 + number,
    notifiedAt: 1_800_000_000_000,
    failedAttempts: 0,
    failedMs: 0,
    failingSince: 0,
    retryAt: 0,
  };
}
