import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { silentLogger } from "../../lib/logger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { type Scrubbable, type ScrubProgress, Scrubber } from "./scrubber.ts";

const hourMs = 3_600_000;

describe("a scrub", () => {
  let clock: VirtualClock;
  let stopping: AbortController;
  let scrubber: Scrubber;
  let running: Promise<void>;
  let ended: string[];
  let steps: number;
  let progress: ScrubProgress;
  let epoch: number | undefined;
  /** The steps, counted from 1, that fail. */
  let isFailing: (step: number) => boolean;
  beforeEach(() => {
    clock = new VirtualClock();
    stopping = new AbortController();
    [ended, steps, isFailing] = [[], 0, () => false];
    progress = { checked: 0, damaged: 0, repaired: 0 };
    epoch = 1;
    const part = (name: Scrubbable["part"]): Scrubbable => ({
      part: name,
      get progress() {
        return progress;
      },
      step: async () => {
        steps += 1;
        if (isFailing(steps)) throw new Error("the database is away");
        return steps % 10 !== 0;
      },
    });
    scrubber = new Scrubber({
      groupId: defaultGroupId,
      begin: () => [part("index"), part("chain")],
      epoch: () => epoch,
      clock,
      metrics: { ...noMetrics, scrubEnded: (_, { part: name }) => void ended.push(name) },
      logger: silentLogger,
      limits: { scrubPeriodMs: 7 * 24 * hourMs },
    });
    running = scrubber.run(stopping.signal);
  });
  afterEach(async () => {
    stopping.abort();
    await running;
  });

  it("continues after an outage of some minutes", async () => {
    isFailing = (step) => step > 3 && step < 8;
    await clock.advance(2 * hourMs);
    expect(ended).toEqual(["index", "chain"]);
  });

  it("if a part fails for an hour, leaves it to the next scrub, which begins an hour later", async () => {
    isFailing = (step) => step > 3 && step < 100;
    await clock.advance(2.9 * hourMs);
    expect(ended).toEqual(["chain"]);
    await clock.advance(1.1 * hourMs);
    expect(ended).toEqual(["chain", "index", "chain"]);
    await clock.advance(6 * 24 * hourMs);
    expect(ended).toEqual(["chain", "index", "chain"]);
  });

  it("is repeated after an hour while there is damage that it could not repair", async () => {
    progress = { checked: 10, damaged: 3, repaired: 2 };
    await clock.advance(1.9 * hourMs);
    expect(ended).toEqual(["index", "chain"]);
    progress = { checked: 10, damaged: 3, repaired: 3 };
    await clock.advance(24 * hourMs);
    expect(ended).toEqual(["index", "chain", "index", "chain"]);
  });

  it("when it runs once, reports the parts that it has read even if a later part fails", async () => {
    isFailing = (step) => step === 12;
    const reported: string[] = [];
    await expect(scrubber.runOnce(({ part }) => void reported.push(part))).rejects.toThrow("the database is away");
    expect(reported).toEqual(["index"]);
  });

  it("begins within an hour whenever it becomes this node's turn, and otherwise after the period", async () => {
    epoch = undefined;
    await clock.advance(30 * hourMs);
    epoch = 2;
    await clock.advance(1.1 * hourMs);
    expect(ended).toEqual(["index", "chain"]);
    epoch = undefined;
    await clock.advance(30 * hourMs);
    epoch = 3;
    await clock.advance(1.1 * hourMs);
    expect(ended).toEqual(["index", "chain", "index", "chain"]);
    await clock.advance(6.9 * 24 * hourMs);
    expect(ended).toHaveLength(4);
    await clock.advance(0.2 * 24 * hourMs);
    expect(ended).toHaveLength(6);
  });

  it("begins within an hour even if another node had the turn for less than an hour", async () => {
    await clock.advance(1.9 * hourMs);
    expect(ended).toEqual(["index", "chain"]);
    epoch = undefined;
    await clock.advance(100);
    epoch = 2;
    await clock.advance(1.1 * hourMs);
    expect(ended).toEqual(["index", "chain", "index", "chain"]);
    await clock.advance(6 * 24 * hourMs);
    expect(ended).toHaveLength(4);
  });
});
