import { expect, it, vi } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { AppendOptions, BatchOutcome, Ledger, OutgoingBatch } from "../../ports/ledger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { IndexProgress } from "../index-progress.ts";
import { defaultEngineLimits } from "../limits.ts";
import { Batcher } from "./batcher.ts";
import type { Claim } from "./claim.ts";
import { ClaimRecorder } from "./claim-recorder.ts";
import { SendingTurns } from "./sending-turns.ts";

const topic = { name: parseTopicName("a"), address: "0x00", digest: "00000000" } as const;

/** A clock whose next turn comes after all work of the current one, as in a process. */
class TurningClock extends VirtualClock {
  override soon(action: () => void): void {
    setImmediate(action);
  }
}

interface NarrowChain {
  bytesMax: number;
  /** How long it takes to accept or refuse a transaction, in milliseconds. */
  readonly answerMs: number;
  readonly clock: VirtualClock;
  readonly sent: string[];
}

/** A chain that takes `bytesMax` bytes of events in a transaction, although its limits do not say so. Appends the letter of each accepted event to `sent`. */
function narrowLedger(chain: NarrowChain): Pick<Ledger, "groupId" | "limits" | "append"> {
  const { answerMs, clock, sent } = chain;
  const limits = {
    eventsPerTransactionMax: 4,
    bytesPerTransactionMax: 1_000_000,
    bytesPerTopic: 0,
    transactionsInFlightMax: 4,
  };
  const append = async (
    batches: readonly OutgoingBatch[],
    _: AbortSignal,
    { onAccepted }: AppendOptions = {},
  ): Promise<readonly BatchOutcome[]> => {
    if (answerMs > 0) await new Promise<void>((resolve) => void clock.after(answerMs, resolve));
    const isTooLarge = batches.some(({ events }) => events.length > chain.bytesMax);
    if (isTooLarge) return batches.map(() => ({ status: "too-large" }));
    onAccepted?.();
    for (const { events } of batches) sent.push(...(Buffer.from(events).toString("latin1").match(/[a-z]/g) ?? []));
    return batches.map(() => ({
      status: "committed",
      firstSequence: 1,
      blockNumber: 0,
      blockHash: "0x00",
      transactionHash: "0x01",
    }));
  };
  return { groupId: defaultGroupId, limits, append };
}

const row = { groupId: defaultGroupId, scope: "", key: "k", token: "t", topic: topic.name, digest: "d", sender: "" };

const claim: Claim = {
  unrecorded: row,
  mayStart: undefined,
  order: undefined,
  onRecorded: () => {},
  onTaken: () => {},
  onFailed: () => {},
};

it.each([
  ["no publish has a key", undefined, 0],
  ["its first publish has a key", claim, 0],
  ["the chain refuses it only later", undefined, 20],
])(
  "keeps the order of a topic's events when one transaction is too large and the next is not, if %s",
  async (_, first, answerMs) => {
    const sent: string[] = [];
    const progress = new IndexProgress();
    progress.advanceTo(0);
    const clock = new TurningClock();
    const recordPublishKeys = async (): Promise<readonly []> => {
      await new Promise<void>((resolve) => void clock.after(10, resolve)); // Meanwhile the next transaction follows.
      return [];
    };
    const batcher = new Batcher({
      ledger: narrowLedger({ bytesMax: 60, answerMs, clock, sent }) as Ledger, // The batcher uses no more of it.
      progress,
      topics: { forget: () => {} },
      recorder: new ClaimRecorder({
        keys: { recordPublishKeys, releasePublishKeys: async () => [] },
        progress,
        clock,
        waitMsMax: 1_000,
        readTime: async () => 0,
      }),
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

it("waits for the answer to a transaction only if the transaction is larger than every accepted one", async () => {
  const turns = new SendingTurns({ soon: (action) => setImmediate(action) });
  const large = turns.probe({ bytes: 1000, topics: 3 });
  expect(turns.isHeld).toBe(true);
  large.accepted();
  await vi.waitFor(() => expect(turns.isHeld).toBe(false));
  turns.probe({ bytes: 1000, topics: 3 });
  expect(turns.isHeld).toBe(false);
  const wide = turns.probe({ bytes: 10, topics: 4 });
  expect(turns.isHeld).toBe(true);
  wide.ended();
  await vi.waitFor(() => expect(turns.isHeld).toBe(false));
});

it("sends a transaction alone if the chain first accepted and then refused its size, or accepted its bytes and its topics only separately", async () => {
  const turns = new SendingTurns({ soon: (action) => setImmediate(action) });
  const isCertain = async (size: { readonly bytes: number; readonly topics: number }): Promise<boolean> => {
    await vi.waitFor(() => expect(turns.isHeld).toBe(false));
    const probe = turns.probe(size);
    const { isHeld } = turns;
    probe.ended();
    return !isHeld;
  };
  turns.probe({ bytes: 1000, topics: 1 }).accepted();
  turns.probe({ bytes: 10, topics: 100 }).accepted();
  expect(await isCertain({ bytes: 1000, topics: 1 })).toBe(true);
  expect(await isCertain({ bytes: 1000, topics: 100 })).toBe(false);
  turns.probe({ bytes: 500, topics: 1 }).refused();
  expect(await isCertain({ bytes: 500, topics: 1 })).toBe(false);
  expect(await isCertain({ bytes: 10, topics: 100 })).toBe(true);
});

it("holds few full transactions, however their bytes are spread over topics", async () => {
  const turns = new SendingTurns({ soon: (action) => setImmediate(action) });
  let held = 0;
  for (let count = 0; count < 500; count += 1) {
    const topics = 100 + ((count * 317) % 801);
    const probe = turns.probe({ bytes: 120_000 - 224 * topics - ((count * 7) % 100), topics });
    if (turns.isHeld) held += 1;
    probe.accepted();
    await vi.waitFor(() => expect(turns.isHeld).toBe(false));
  }
  expect(held).toBeLessThan(50);
});

it("sends a transaction alone if mixes of accepted sizes were refused", async () => {
  const turns = new SendingTurns({ soon: (action) => setImmediate(action) });
  const settled = (): Promise<void> => vi.waitFor(() => expect(turns.isHeld).toBe(false));
  for (const size of [
    { bytes: 1000, topics: 1 },
    { bytes: 10, topics: 100 },
  ]) {
    turns.probe(size).accepted();
    await settled();
  }
  const mix = { bytes: 500, topics: 50 };
  const probe = turns.probe(mix);
  expect(turns.isHeld).toBe(false);
  probe.refused();
  turns.probe(mix);
  expect(turns.isHeld).toBe(true);
});

it("keeps the order of a topic after a transaction of a size that the chain took earlier and refuses now", async () => {
  const progress = new IndexProgress();
  progress.advanceTo(0);
  const clock = new TurningClock();
  const chain: NarrowChain = { bytesMax: 1_000, answerMs: 20, clock, sent: [] };
  const batcher = new Batcher({
    ledger: narrowLedger(chain) as Ledger, // The batcher uses no more of it.
    progress,
    topics: { forget: () => {} },
    recorder: new ClaimRecorder({
      keys: { recordPublishKeys: async () => [], releasePublishKeys: async () => [] },
      progress,
      clock,
      waitMsMax: 1_000,
      readTime: async () => 0,
    }),
    clock,
    metrics: noMetrics,
    logger: silentLogger,
    limits: defaultEngineLimits,
  });
  const publish = async (texts: string): Promise<void> => {
    for (const [index, text] of texts.split("").entries()) {
      const content = Buffer.from(index < 4 ? `${text}${"0".repeat(20)}` : text);
      batcher.add({ topic, payload: { content, extensions: [] }, onSettled: () => {} });
    }
    await clock.advance(1_000);
  };
  await publish("abcd");
  chain.bytesMax = 60;
  await publish("efgh");
  chain.sent.length = 0;
  await publish("ijklmnop");
  expect(chain.sent.join("")).toBe("ijklmnop");
});
