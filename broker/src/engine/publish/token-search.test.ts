import { formatEventId, topicDigest } from "@stele/wire";
import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { positionZero } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { IndexProgress } from "../index-progress.ts";
import { TokenSearch } from "./token-search.ts";

it("a read that fails after its caller has stopped waiting leaves no rejection without a handler", async () => {
  const reading = createDeferred<never>();
  const progress = new IndexProgress();
  progress.advanceTo(5);
  const search = new TokenSearch({
    groupId: defaultGroupId,
    store: { readBatches: () => reading.promise },
    progress,
    limits: { readBatchesMax: 10, readBytesMax: 1_000 },
  });
  const topic = parseTopicName("a");
  search.note("token", formatEventId({ topicDigest: topicDigest(topic), sequence: 1, blockNumber: 3 }));
  const row = { groupId: defaultGroupId, scope: "", key: "k", token: "token", topic, after: positionZero };
  const stopping = new AbortController();
  const found = search.find({ ...row, digest: "", sender: "", recordedAt: 0 }, positionZero, stopping.signal);
  stopping.abort();
  reading.reject(new Error("the database is away"));
  // The runner fails the test if a rejection has no handler.
  await expect(found).rejects.toThrow("the database is away");
});
