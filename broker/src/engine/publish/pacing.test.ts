import { describe, expect, it } from "vitest";
import { Pacing } from "./pacing.ts";

const limits = { lingerMsMax: 10, pipelineAfterMs: 100 };
const some = (count: number) => ({ count, isFull: false });
const full = { count: 1000, isFull: true };

describe("while a transaction is in progress", () => {
  it("the next transaction waits until the one in progress is 100 ms old", () => {
    const pacing = underWaySince(1_000);
    expect(pacing.waitMs(some(5), 1_000)).toBe(100);
    expect(pacing.waitMs(some(5), 1_060)).toBe(40);
    expect(pacing.waitMs(some(5), 1_100)).toBe(0);
  });

  it("a full transaction is sent at once", () => {
    expect(underWaySince(1_000).waitMs(full, 1_000)).toBe(0);
  });

  it("the age of the youngest transaction in progress decides how long the next one waits", () => {
    const pacing = underWaySince(1_000);
    pacing.started(5, 1_090);
    expect(pacing.waitMs(some(5), 1_100)).toBe(90);
  });

  it("one half of many events is sent in parallel, and later events wait for both halves", () => {
    const pacing = ended({ events: 600, waiting: 0, tookMs: 8 });
    pacing.started(300, 1_008);
    expect(pacing.waitMs(some(299), 1_010)).toBe(98);
    expect(pacing.isHalf(299)).toBe(false);
    expect(pacing.waitMs(some(300), 1_010)).toBe(0);
    expect(pacing.isHalf(300)).toBe(true);
    pacing.started(300, 1_010);
    expect(pacing.waitMs(some(300), 1_010)).toBe(100);
    expect(pacing.isHalf(300)).toBe(false);
  });

  it("two halves stay two transactions after one has ended", () => {
    const pacing = ended({ events: 600, waiting: 0, tookMs: 8 });
    pacing.started(300, 1_008);
    pacing.started(300, 1_010);
    pacing.ended({ events: 300, waiting: 0, startedAt: 1_008 }, 1_012);
    expect(pacing.waitMs(some(299), 1_013)).toBe(97);
    expect(pacing.waitMs(some(300), 1_013)).toBe(0);
  });

  it.each([
    ["of fewer than 64 callers", { events: 63, waiting: 0, tookMs: 8 }],
    ["beside a transaction that took 100 ms", { events: 640, waiting: 0, tookMs: 100 }],
  ])("events %s are not sent in halves", (_name, transaction) => {
    const pacing = ended(transaction);
    pacing.started(20, 2_000);
    expect(pacing.isHalf(600)).toBe(false);
    expect(pacing.waitMs(some(600), 2_000)).toBe(100);
  });
});

describe("after a transaction has ended", () => {
  it("the next transaction lingers for half of the time that the ended one took", () => {
    const pacing = ended({ events: 56, waiting: 4, tookMs: 8 });
    expect(pacing.waitMs(some(4), 1_008)).toBe(4);
    expect(pacing.waitMs(some(59), 1_011)).toBe(1);
    expect(pacing.waitMs(some(59), 1_012)).toBe(0);
  });

  it("the next transaction is sent once all callers are back, or half of them if they are 64 or more", () => {
    expect(ended({ events: 59, waiting: 4, tookMs: 8 }).waitMs(some(63), 1_009)).toBe(0);
    expect(ended({ events: 60, waiting: 4, tookMs: 8 }).waitMs(some(32), 1_009)).toBe(0);
  });

  it("a single caller never waits", () => {
    expect(ended({ events: 1, waiting: 0, tookMs: 8 }).waitMs(some(1), 1_008)).toBe(0);
  });

  it("a full transaction is sent at once", () => {
    expect(ended({ events: 2_000, waiting: 0, tookMs: 8 }).waitMs(full, 1_008)).toBe(0);
  });

  it("no wait exceeds the limits when the clock steps back", () => {
    expect(ended({ events: 64, waiting: 0, tookMs: 20 }).waitMs(some(1), 0)).toBe(10);
    expect(underWaySince(3_600_000).waitMs(some(1), 0)).toBe(limits.pipelineAfterMs);
  });

  it("the next transaction lingers no longer than the limit", () => {
    expect(ended({ events: 60, waiting: 4, tookMs: 12_000 }).waitMs(some(4), 13_000)).toBe(10);
  });
});

function underWaySince(startedAt: number): Pacing {
  const pacing = new Pacing(limits);
  pacing.started(5, startedAt);
  return pacing;
}

function ended(transaction: { events: number; waiting: number; tookMs: number }): Pacing {
  const pacing = new Pacing(limits);
  const { events, waiting, tookMs } = transaction;
  pacing.started(events, 1_000);
  pacing.ended({ events, waiting, startedAt: 1_000 }, 1_000 + tookMs);
  return pacing;
}
