import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { BatchOutcome, Ledger, OutgoingBatch } from "../../ports/ledger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { IndexProgress } from "../index-progress.ts";
import { defaultEngineLimits } from "../limits.ts";
import { Batcher } from "./batcher.ts";
import type { Claim } from "./claim.ts";
import { ClaimRecorder } from "./claim-recorder.ts";

const topic = { name: parseTopicName("a"), address: "0x00", digest: "00000000" } as const;

/** A clock whose next turn comes after all work of the current one, as in a process. */
class TurningClock extends VirtualClock {
  override soon(action: () => void): void {
    setImmediate(action);
  }
}

/** A chain that takes `bytesMax` bytes of events in a transaction, although its limits do not say so. Appends one event to `sent` for each. */
function narrowLedger(bytesMax: number, sent: string[]): Pick<Ledger, "groupId" | "limits" | "append"> {
  const limits = {
    eventsPerTransactionMax: 4,
    bytesPerTransactionMax: 1_000_000,
    bytesPerTopic: 0,
    transactionsInFlightMax: 4,
  };
  const append = async (batches: readonly OutgoingBatch[]): Promise<readonly BatchOutcome[]> => {
    const isTooLarge = batches.some(({ events }) => events.length > bytesMax);
    if (isTooLarge) return batches.map(() => ({ status: "too-large" }));
    for (const { events } of batches) sent.push(...(Buffer.from(events).toString("latin1").match(/[a-z]/g) ?? []));
    return batches.map(() => ({ status: "committed", firstSequence: 1, blockNumber: 0 }));
  };
  return { groupId: defaultGroupId, limits, append };
}

const row = { groupId: defaultGroupId, scope: "", key: "k", token: "t", topic: topic.name, digest: "d", sender: "" };

const claim: Claim = {
  unrecorded: row,
  mayStart: undefined,
  onRecorded: () => {},
  onTaken: () => {},
  onFailed: () => {},
};

it.each([
  ["no publish has a key", undefined],
  ["its first publish has a key", claim],
])(
  "keeps the order of a topic whose transaction is too large although the next one is not, if %s",
  async (_, first) => {
    const sent: string[] = [];
    const progress = new IndexProgress();
    progress.advanceTo(0);
    const clock = new TurningClock();
    const recordPublishKeys = async (): Promise<readonly []> => {
      await new Promise<void>((resolve) => void clock.after(10, resolve)); // Meanwhile the next transaction follows.
      return [];
    };
    const batcher = new Batcher({
      ledger: narrowLedger(60, sent) as Ledger, // The batcher uses no more of it.
      progress,
      topics: { forget: () => {} },
      recorder: new ClaimRecorder({ keys: { recordPublishKeys }, progress, clock, readTime: async () => 0 }),
      clock,
      metrics: noMetrics,
      logger: silentLogger,
      limits: defaultEngineLimits,
    });
    const texts = "abcdefghij".split("");
    for (const [index, text] of texts.entries()) {
      const content = Buffer.from(index < 4 ? `${text}${"0".repeat(20)}` : text);
      const event = { topic, payload: { content, extensions: [] }, onSettled: () => {} };
      batcher.add(index === 0 ? { ...event, claim: first } : event);
    }
    await clock.advance(1_000);
    expect(sent).toEqual(texts);
  },
);
