import { afterEach, expect, it } from "vitest";
import type { Ledger } from "../../ports/ledger.ts";
import { TestEngine } from "../testing/test-engine.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const call = { topic: "a", groupId: undefined, content: new TextEncoder().encode("x"), extensions: [] };
const limits = {
  eventsPerTransactionMax: 1,
  bytesPerTransactionMax: 999,
  bytesPerTopic: 0,
  transactionsInFlightMax: 1,
};

it("calls waiting callers back in order, each when there is room for all of its publishes", async () => {
  const held: (() => void)[] = [];
  const append: Ledger["append"] = async (batches) => {
    await new Promise<void>((resolve) => void held.push(resolve));
    return batches.map(() => ({ status: "rejected", reason: "closed-topic" }) as const);
  };
  engine = await TestEngine.start({ append, ledgerLimits: limits, limits: { publishesWaitingMax: 4 } });
  await engine.broker.open({ topic: "a", groupId: undefined });
  for (let count = 0; count < 5; count += 1) {
    engine.broker.submit(call, () => {});
    await engine.clock.settle(); // one is in progress, four wait in the end
  }
  const called: string[] = [];
  const wait = (name: string, count: number): boolean =>
    engine.broker.whenRoom(
      Array.from({ length: count }, () => call),
      () => called.push(name),
    );
  expect(wait("three", 3)).toBe(false);
  expect(wait("one", 1)).toBe(false);
  const release = async (): Promise<void> => {
    held.shift()?.();
    await engine.clock.advance(1_000);
  };
  await release();
  await release();
  expect(called).toEqual([]);
  expect(wait("late", 1)).toBe(false); // it would fit
  await release();
  expect(called).toEqual(["three", "one", "late"]);
  for (let count = 0; count < 2; count += 1) await release();
});
