import { afterEach, expect, it } from "vitest";
import type { SubscriptionState } from "../../domain/subscription.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { testCaller } from "../testing/as-caller.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { withCalls } from "../../lib/with-calls.ts";

/** States that the store derives when it reads a row. The stored states differ. */
const derived = new Map<string, SubscriptionState>();
let reads = 0;

let engine: TestEngine;
afterEach(async () => {
  derived.clear();
  await engine.stop();
});

async function start(): Promise<void> {
  const memory = createMemoryStore();
  engine = await TestEngine.start({
    store: withCalls(memory, {
      searchSubscriptions: async (search, page) => {
        reads += 1;
        const rows = await memory.searchSubscriptions(search, page);
        return rows.map((row) => ({ ...row, state: derived.get(row.id) ?? row.state }));
      },
    }),
  });
  await engine.broker.open({ topic: "a", groupId: undefined });
}

/** The identifiers of all pages. */
async function search(state: SubscriptionState, limit: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await engine.broker.operator.searchSubscriptions(testCaller, { state }, { after, limit });
    ids.push(...page.items.map(({ subscription }) => subscription.id));
    after = page.next;
    if (after === undefined) return ids;
  }
}

it.each([1, 2, 50])("a search by state finds the subscriptions that show this state, in pages of %i", async (limit) => {
  await start();
  const ids: string[] = [];
  for (let count = 0; count < 7; count += 1) ids.push(await engine.subscribe("a"));
  const [first = "", second = "", third = "", fourth = "", ...others] = ids.toSorted();
  for (const id of [first, third]) derived.set(id, "locked");
  derived.set(second, "damaged");
  const order = { order: { kind: "pause" }, isDryRun: false } as const;
  for (const id of [third, fourth]) await engine.broker.operator.orderSubscription(testCaller, id, order);
  expect(await search("locked", limit)).toEqual([first, third]);
  expect(await search("damaged", limit)).toEqual([second]);
  expect(await search("paused", limit)).toEqual([fourth]);
  expect(await search("active", limit)).toEqual(others);
  expect(await search("suspended", limit)).toEqual([]);
});

it("reads ever more rows at once while all show another state", async () => {
  await start();
  for (let count = 0; count < 100; count += 1) derived.set(await engine.subscribe("a"), "locked");
  const ids = [...derived.keys()].toSorted();
  const [first = "", last = ""] = [ids[0], ids.at(-1)];
  for (const id of [first, last]) derived.delete(id);
  reads = 0;
  expect(await search("active", 1)).toEqual([first, last]);
  expect(reads).toBeLessThanOrEqual(10);
});
