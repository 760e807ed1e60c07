import { expect, test } from "vitest";
import type { GroupGauge } from "../ports/metrics.ts";
import { createMetrics } from "./metrics.ts";

test("exposes counters, gauges and histograms with their labels", async () => {
  const metrics = createMetrics();
  metrics.eventsPublished("1", 3);
  metrics.eventsPublished("1", 2);
  metrics.transactionCommitted("1", { events: 5, durationMs: 20 });
  metrics.blocksIndexed("1", 2);
  metrics.entrySkipped("1", "wrong-root");
  metrics.reorganised("1", { events: 3 });
  metrics.attemptEnded("accepted", 3);
  metrics.attemptEnded("failed", 15_000);
  const lines = (await metrics.render()).split("\n");
  expect(lines).toEqual(
    expect.arrayContaining([
      'stele_events_published_total{group="1"} 5',
      'stele_transaction_duration_seconds_bucket{le="0.01",group="1"} 0',
      'stele_transaction_duration_seconds_bucket{le="0.025",group="1"} 1',
      'stele_transaction_events_sum{group="1"} 5',
      'stele_blocks_indexed_total{group="1"} 2',
      'stele_chain_entries_skipped_total{group="1",reason="wrong-root"} 1',
      'stele_reorganisations_total{group="1"} 1',
      'stele_events_vanished_total{group="1"} 3',
      'stele_delivery_attempt_duration_seconds_count{outcome="accepted"} 1',
      'stele_delivery_attempt_duration_seconds_bucket{le="15",outcome="failed"} 1',
    ]),
  );
  expect(metrics.contentType).toMatch(/^text\/plain/);
});

test("has buckets for a transaction that takes 15 minutes to be final, and for an attempt with a timeout of 5 minutes", async () => {
  const metrics = createMetrics();
  metrics.transactionCommitted("1", { events: 5, durationMs: 900_000 });
  metrics.attemptEnded("failed", 299_000);
  const lines = (await metrics.render()).split("\n");
  expect(lines).toEqual(
    expect.arrayContaining([
      'stele_transaction_duration_seconds_bucket{le="300",group="1"} 0',
      'stele_transaction_duration_seconds_bucket{le="1200",group="1"} 1',
      'stele_delivery_attempt_duration_seconds_bucket{le="300",outcome="failed"} 1',
    ]),
  );
});

test("reads a group's state on each scrape", async () => {
  const metrics = createMetrics();
  let groups: readonly GroupGauge[] = [{ groupId: "1", ready: false, indexedBlock: -1 }];
  metrics.watchGroups(() => groups);
  const before = await metrics.render();
  expect(before).toContain('stele_group_up{group="1"} 0');
  expect(before).not.toMatch(/^stele_(indexed_block|chain_head_block|group_lag_blocks)\{/m);
  groups = [{ groupId: "1", ready: true, indexedBlock: 15, headBlock: 17 }];
  const after = await metrics.render();
  for (const line of [
    'stele_group_up{group="1"} 1',
    'stele_indexed_block{group="1"} 15',
    'stele_chain_head_block{group="1"} 17',
    'stele_group_lag_blocks{group="1"} 2',
  ]) {
    expect(after).toContain(line);
  }
});

test("exposes a node's membership, the groups it follows, and the number of its subscriptions", async () => {
  const metrics = createMetrics();
  const group = { ready: true, indexedBlock: 1 };
  let isMember = false;
  metrics.watchGroups(() => [
    { ...group, groupId: "1", role: "follows", subscriptions: 7 },
    { ...group, groupId: "2", role: "watches", subscriptions: 0 },
  ]);
  expect(await metrics.render()).not.toContain("stele_node_member");
  metrics.watchNode(() => ({ isMember }));
  expect(await metrics.render()).toContain("stele_node_member 0\n");
  isMember = true;
  const lines = (await metrics.render()).split("\n");
  expect(lines).toEqual(
    expect.arrayContaining([
      "stele_node_member 1",
      'stele_group_follows{group="1"} 1',
      'stele_group_follows{group="2"} 0',
      'stele_subscriptions_delivered{group="1"} 7',
      'stele_subscriptions_delivered{group="2"} 0',
    ]),
  );
});

test("exposes callbacks: current connections and waits, and counts of replies and look-ups", async () => {
  const metrics = createMetrics();
  let connections = 3;
  metrics.watchCallbacks(() => ({ connections, waiting: 2 }));
  connections = 4;
  metrics.consentAsked("refused");
  metrics.lookupEnded("timed-out");
  metrics.lookupEnded("timed-out");
  const lines = (await metrics.render()).split("\n");
  expect(lines).toEqual(
    expect.arrayContaining([
      "stele_callback_connections 4",
      "stele_callbacks_waiting 2",
      'stele_callback_consents_total{reply="refused"} 1',
      'stele_callback_lookups_total{outcome="timed-out"} 2',
    ]),
  );
});

test("exposes process and event loop metrics", async () => {
  const text = await createMetrics().render();
  expect(text).toMatch(/^nodejs_eventloop_lag_seconds \d/m);
  expect(text).toMatch(/^process_resident_memory_bytes \d/m);
});

test("two registries do not share counts", async () => {
  createMetrics().eventsPublished("1", 3);
  expect(await createMetrics().render()).not.toContain('stele_events_published_total{group="1"} 3');
});
