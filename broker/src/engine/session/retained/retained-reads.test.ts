import { encodeEvents } from "@stele/wire";
import { expect, test } from "vitest";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { endOfBlock } from "../../../domain/position.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { Cancellation } from "../../../lib/cancellation.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import { TimeSlices } from "../../../lib/time-slices.ts";
import { alpha, batchOf } from "../../../ports/store-examples.contract.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { IndexProgress } from "../../index-progress.ts";
import { defaultEngineLimits } from "../../limits.ts";
import { RetainedEvents } from "./retained.ts";
import { RetainedReads } from "./retained-reads.ts";

// An AbortSignal compares each new listener with all others, so thousands of reads must not share one.
test("20 reads that wait for their turn cause no warning of Node about too many listeners", async () => {
  const warnings: Error[] = [];
  const warn = (warning: Error): void => void warnings.push(warning);
  process.on("warning", warn);
  const answered = createDeferred<void>();
  const readBatches = () => answered.promise.then(() => []);
  const limits = { ...defaultEngineLimits, feedReadsMax: 1 };
  const reads = new RetainedReads({
    store: { listRetained: async () => [], readBatches },
    readDropped: async () => [],
    limits,
  });
  const reader = { groupId: defaultGroupId, progress: new IndexProgress() };
  const all = Array.from({ length: 20 }, (_, index) => {
    return reads.find(reader, { topic: alpha, position: endOfBlock(index) }, new Cancellation());
  });
  answered.resolve();
  await Promise.all(all);
  await new Promise((resolve) => setImmediate(resolve)); // Node has emitted its warnings.
  process.off("warning", warn);
  expect(warnings).toEqual([]);
});

test("a read that waits for the chain ends when it is aborted, and the next read returns the same event", async () => {
  const events = encodeEvents([{ content: Buffer.from("kept"), extensions: [["svc-retain", "true"]] }]);
  const batch = batchOf(alpha, { block: 1, sequence: 1, count: 1, events });
  const { firstPosition: position } = batch;
  const asked = createDeferred<void>();
  const answered = createDeferred<void>();
  const retainedReads = new RetainedReads({
    store: { listRetained: async () => [{ topic: alpha, position, sequence: 1 }], readBatches: async () => [batch] },
    readDropped: async (_, batches) => {
      asked.resolve();
      await answered.promise;
      return batches;
    },
    limits: defaultEngineLimits,
  });
  const retained = new RetainedEvents({
    groupId: defaultGroupId,
    progress: new IndexProgress(),
    retainedReads,
    slices: new TimeSlices(new VirtualClock()),
    extensionPrefix: "svc-",
    mayReceive: () => true,
  });
  retained.add(parseTopicFilter(alpha), endOfBlock(1));
  const stopping = new Cancellation();
  const stopped = retained.next(stopping);
  await asked.promise;
  stopping.abort();
  expect(await stopped).toBeUndefined();
  answered.resolve();
  expect(await retained.next(new Cancellation())).toMatchObject({ event: { topic: alpha, position } });
});
