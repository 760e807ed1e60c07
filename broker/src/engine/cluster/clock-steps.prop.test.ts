import fc from "fast-check";
import { expect, it } from "vitest";
import type { PublishResult } from "../broker.ts";
import { keyedCall } from "../testing/keyed-publish.ts";
import { publish } from "../testing/publish.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const year = 8_760 * hour;

/** A history of steps: set the clock of a node forward or back by `ms`, publish there under a new key, and let time pass for `forMs`. */
const steps = fc.array(
  fc.record({
    node: fc.nat({ max: 2 }),
    ms: fc.oneof(
      fc.integer({ min: -6 * hour, max: 6 * hour }),
      fc.integer({ min: -6 * hour, max: 10 * year }),
      fc.constantFrom(-6 * hour, 4 * 24 * hour, 10 * year),
    ),
    forMs: fc.integer({ min: 1, max: 3 * second }),
  }),
  { minLength: 1, maxLength: 12 },
);

/** Attempts that each event needs at each subscription. */
const attemptsNeeded = 3;
/** Failed time after which a subscription is suspended: well above the waits between `attemptsNeeded` attempts, far below the larger clock steps. */
const giveUpAfterMs = 60 * second;

it.each([1, 3])(
  "loses no event and no publish key, suspends nothing and keeps every membership while the clocks of %i nodes jump",
  async (nodes) => {
    await fc.assert(
      fc.asyncProperty(steps, async (history) => {
        const cluster = await TestCluster.start(nodes, { limits: { giveUpAfterMs } });
        const attempts = new Map<string, number>();
        cluster.sink.receive("http://receiver/", ({ subscription, eventId }) => {
          const key = `${subscription.id} ${eventId}`;
          attempts.set(key, (attempts.get(key) ?? 0) + 1);
          return (attempts.get(key) ?? 0) < attemptsNeeded
            ? { status: "failed", reason: "500" }
            : { status: "accepted" };
        });
        try {
          await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
          const ids: string[] = [];
          const results: PublishResult[] = [];
          for (let index = 0; index < 4; index += 1) ids.push(await cluster.run(cluster.subscribe(index % nodes, "a")));
          const joined = cluster.nodes.map((node) => node.ids.size);
          for (const { node, ms, forMs } of history) {
            cluster.stepClock(node % nodes, ms);
            const call = keyedCall(String(results.length), "event");
            results.push(await cluster.run(publish(cluster.node(node % nodes).broker, call)));
            await cluster.clock.advance(forMs);
          }
          await cluster.clock.advance((history.length + 2) * 5 * second);
          // Old keys are removed once a minute.
          await cluster.clock.advance(2 * minute);
          for (const [index, { node }] of history.entries()) {
            const call = keyedCall(String(index), "event");
            expect(await cluster.run(publish(cluster.node(node % nodes).broker, call))).toEqual(results[index]);
          }
          const rows = await cluster.shared.store.listSubscriptions();
          const all = history.map((_, index) => index + 1);
          expect(rows.map(({ state, notifiedCount }) => ({ state, notifiedCount }))).toEqual(
            ids.map(() => ({ state: "active", notifiedCount: all.length })),
          );
          for (const id of ids) expect([...new Set(cluster.sink.sequencesOf(id))]).toEqual(all);
          expect(cluster.nodes.map((node) => node.ids.size)).toEqual(joined);
        } finally {
          await cluster.stopAll();
        }
      }),
      { numRuns: 10 },
    );
  },
);
