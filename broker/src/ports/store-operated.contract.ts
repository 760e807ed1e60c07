import { describe, expect, it } from "vitest";
import type { NodeId } from "../domain/node.ts";
import { positionZero, toPosition } from "../domain/position.ts";
import { nothingFailed } from "../domain/subscription.ts";
import { parseTopicFilter } from "../domain/topic-filter.ts";
import type { Store } from "./store.ts";
import { testDeadLetters } from "./store-dead-letters.contract.ts";
import type { SubscriptionSearch } from "./subscription-search.ts";
import { group, history, otherGroup, subscriptionOf, webhookTo } from "./store-examples.contract.ts";

const node = "00000000-0000-4000-9000-000000000001" as NodeId; // Any UUID is valid.
const page = { after: undefined, limit: 10 };

/** The store's guarantees about the searches and changes of operators. */
export function testOperated(store: () => Store): void {
  describe("dead letters", () => testDeadLetters(store));

  it("finds subscriptions by each criterion, page by page in the order of their identifiers", async () => {
    const down = webhookTo({ url: "https://down.example:8443/x", format: "JsonRPC" });
    const all = [
      subscriptionOf(1, { ...nothingFailed, principal: "acme/billing", owner: node }),
      subscriptionOf(2, { failingSince: 5_000, delivery: down, state: "paused" }),
      subscriptionOf(3, { failingSince: 9_000, groupId: otherGroup, filter: parseTopicFilter("beta%/+") }),
    ];
    for (const subscription of all) await store().insertSubscription(subscription, 0);
    const search = async (criteria: SubscriptionSearch, at = page) =>
      (await store().searchSubscriptions(criteria, at)).map(({ id }) => all.findIndex((one) => one.id === id) + 1);
    expect(await store().searchSubscriptions({}, page)).toEqual(all);
    expect(await search({ groupId: otherGroup })).toEqual([3]);
    expect(await search({ state: "paused" })).toEqual([2]);
    expect(await search({ format: "JsonRPC" })).toEqual([2]);
    expect(await search({ filter: parseTopicFilter("alpha/#") })).toEqual([1, 2]);
    expect(await search({ prefix: "beta%" })).toEqual([3]);
    expect(await search({ prefix: "Beta" })).toEqual([]);
    expect(await search({ receivers: ["http://down.example", "https://down.example:8443"] })).toEqual([2]);
    expect(await search({ hosts: ["http://down.example", "https://down.example"] })).toEqual([2]);
    expect(await search({ hosts: ["http://down.example"] })).toEqual([]);
    expect(await search({ hosts: ["https://down"] })).toEqual([]);
    expect(await search({ principal: "acme/billing" })).toEqual([1]);
    expect(await search({ owner: node })).toEqual([1]);
    expect(await search({ failingBefore: 9_000 })).toEqual([2]);
    expect(await search({ failingBefore: 9_001 })).toEqual([2, 3]);
    expect(await search({ failingBefore: 9_001, groupId: group })).toEqual([2]);
    expect(await search({}, { after: undefined, limit: 2 })).toEqual([1, 2]);
    expect(await search({ failingBefore: 9_001 }, { after: all[1]?.id, limit: 2 } as typeof page)).toEqual([3]);
  });

  it("moves a cursor back and forth under the next epoch, and refuses writes under earlier epochs", async () => {
    await store().applyBlocks(group, history);
    const given = subscriptionOf(5);
    await store().insertSubscription(given, 0);
    expect(await store().moveSubscription(given, { cursor: positionZero, state: "paused" }, 0)).toBe("moved");
    const back = { ...given, cursor: positionZero, state: "paused", epoch: 1, ...nothingFailed };
    expect(await store().findSubscription(given.id)).toEqual(back);
    const { id, notifiedCount, notifiedAt } = given;
    const late = { id, epoch: 0, cursor: given.cursor, notifiedCount, notifiedAt, ...nothingFailed };
    expect(await store().saveProgress([late])).toEqual([id]);
    expect(await store().moveSubscription(given, { state: "active" }, 0)).toBe("refused");
    const delivery = webhookTo({ url: "http://other.example/" });
    const move = { cursor: toPosition(6, 0), delivery, filter: parseTopicFilter("beta") };
    expect(await store().moveSubscription({ ...given, epoch: 1 }, move, 0)).toBe("moved");
    expect(await store().findSubscription(id)).toEqual({ ...back, ...move, epoch: 2 });
    expect(await store().countSubscriptionsTo("http://other.example")).toBe(1);
  });

  it("stores the failures that a move contains", async () => {
    const given = subscriptionOf(5);
    await store().insertSubscription(given, 0);
    const failure = { failedAttempts: 3, failedMs: 7_000, failingSince: 9_000, retryAt: 0 };
    expect(await store().moveSubscription(given, { state: "paused", failure }, 0)).toBe("moved");
    expect(await store().findSubscription(given.id)).toEqual({ ...given, ...failure, state: "paused", epoch: 1 });
  });

  it("keeps delivery options until a change leaves them out", async () => {
    const options = { form: "cloudevents", concurrency: 8, batchEvents: 100, batchMs: 20 } as const;
    const given = subscriptionOf(5, { delivery: webhookTo({ options }) });
    await store().insertSubscription(given, 0);
    expect(await store().findSubscription(given.id)).toEqual(given);
    await store().updateSubscription(given, { state: "active", delivery: webhookTo() });
    expect((await store().findSubscription(given.id))?.delivery).toEqual(webhookTo());
    await store().moveSubscription({ ...given, epoch: 1 }, { delivery: webhookTo({ options: { concurrency: 2 } }) }, 0);
    expect(await store().findSubscription(given.id)).toMatchObject({ delivery: { options: { concurrency: 2 } } });
  });

  it("refuses a cursor that was read before a rollback of the index", async () => {
    await store().applyBlocks(group, history);
    await store().insertSubscription(subscriptionOf(1), 0);
    await store().rollBack(group, (await store().listBlocks(group, { atMost: 2 }))[1]);
    const move = { cursor: toPosition(6, 0) };
    expect(await store().moveSubscription(subscriptionOf(1), move, 0)).toBe("rolled-back");
    expect(await store().moveSubscription(subscriptionOf(1), { state: "paused" }, 0)).toBe("moved");
    expect(await store().moveSubscription({ ...subscriptionOf(1), epoch: 1 }, move, 1)).toBe("moved");
  });
}
