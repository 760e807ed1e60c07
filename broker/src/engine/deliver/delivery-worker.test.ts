import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Event } from "../../domain/event.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import { toInterest } from "../../domain/interest.ts";
import { endOfBlock } from "../../domain/position.ts";
import { type CallbackSubscription, nothingFailed, parseSubscriptionId } from "../../domain/subscription.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { silentLogger } from "../../lib/logger.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { eventsOf } from "../batch-events.ts";
import { Feed } from "../dispatch/feed.ts";
import { FeedHub } from "../dispatch/feed-hub.ts";
import { RecentBatches } from "../dispatch/recent-batches.ts";
import { EventIds } from "../event-ids.ts";
import { IndexProgress } from "../index-progress.ts";
import { Troubles } from "../integrity/troubles.ts";
import { defaultEngineLimits as limits } from "../limits.ts";
import { batchOfOne } from "../testing/batch-of-one.ts";
import { RecordingSink } from "../testing/recording-sink.ts";
import { AttemptHistory } from "./attempt-history.ts";
import { DeliveryWorker } from "./delivery-worker.ts";
import { ProgressWriter } from "./progress-writer.ts";
import { ReceiverFailures } from "./receiver-failures.ts";
import { SharedEventsAhead } from "./events-ahead.ts";
import { collectGarbage } from "../../lib/testing/collect-garbage.ts";

const filter = parseTopicFilter("#");
const url = "http://receiver/";
const subscription: CallbackSubscription = {
  id: parseSubscriptionId("11111111-1111-4111-8111-111111111111"),
  filter,
  groupId: defaultGroupId,
  delivery: { kind: "webhook", format: "RESTful", url, secret: undefined, options: { concurrency: 2 } },
  state: "active",
  cursor: endOfBlock(0),
  notifiedCount: 0,
  notifiedAt: 0,
  ...nothingFailed,
  createdAt: 0,
  owner: undefined,
  epoch: 0,
};

/** A worker whose events come from {@link offer} only, so that nothing else keeps them. */
function startWorker(sink: RecordingSink) {
  const clock = new VirtualClock();
  const slices = new TimeSlices(clock);
  const store = createMemoryStore();
  const parts = { clock, slices, store, limits, sink, logger: silentLogger, metrics: noMetrics };
  const hub = new FeedHub({ slices });
  const feed = new Feed({
    ...parts,
    hub,
    groupId: defaultGroupId,
    filters: [filter],
    interest: toInterest(filter),
    after: subscription.cursor,
    recent: new RecentBatches(parts),
    progress: new IndexProgress(),
  });
  const worker = new DeliveryWorker(
    { subscription, feed },
    {
      ...parts,
      randomness: { fraction: () => 0, uuid: () => "", bytes: (count) => new Uint8Array(count) },
      eventIds: new EventIds(),
      failures: new ReceiverFailures(clock),
      history: new AttemptHistory(),
      troubles: new Troubles(),
      sharedEventsAhead: new SharedEventsAhead(),
      skippedLog: silentLogger,
      unreadLog: silentLogger,
      progressWriter: new ProgressWriter(parts),
      onGivenUp: () => expect.unreachable("no attempt ends but those that are accepted"),
    },
  );
  worker.start();
  return { worker, hub };
}

function offer(hub: FeedHub, topic: string, blockNumber: number): WeakRef<Event> {
  const batch = batchOfOne({ topic, blockNumber });
  hub.offer(defaultGroupId, [batch]);
  const [event] = eventsOf(batch);
  if (event === undefined) throw new Error("the batch has an event");
  return new WeakRef(event);
}

it("keeps no content of an event that was accepted behind one that hangs", async () => {
  const sink = new RecordingSink();
  sink.receive(url, ({ event }) => (event.topic === "a" ? new Promise(() => {}) : { status: "accepted" }));
  const { worker, hub } = startWorker(sink);
  await turn();
  const hanging = offer(hub, "a", 1);
  const accepted = offer(hub, "b", 2);
  for (let block = 3; block < 10; block += 1) offer(hub, "b", block); // Variables may still have the last one.
  while (worker.acceptedAhead.size < 8) await turn();
  sink.attempts.length = 0; // They keep their events.
  await turn();
  collectGarbage();
  expect(hanging.deref() === undefined).toBe(false);
  expect(accepted.deref() === undefined).toBe(true);
  await worker.stop(0);
});
