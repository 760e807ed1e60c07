import { expect, it } from "vitest";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { NodeGate } from "./node-gate.ts";

it("before time moves on, a node that resumes runs all actions that waited for it, and the work that they cause", async () => {
  const clock = new VirtualClock();
  const gate = new NodeGate(clock, () => 0);
  const shared = gate.wrap({ answer: () => Promise.resolve() }, { isShared: true });
  const startedAt: number[] = [];
  const answeredAt: number[] = [];
  const due = async (): Promise<void> => {
    startedAt.push(clock.monotonic());
    await shared.answer();
    answeredAt.push(clock.monotonic());
  };
  gate.halt();
  for (let ms = 1; ms <= 20; ms += 1) gate.clock.after(ms, () => void due());
  await clock.advance(100);
  expect(startedAt).toEqual([]);
  const resumedAt = clock.monotonic();
  gate.resume();
  for (let ms = 1; ms <= 100; ms += 1) clock.after(ms, () => {});
  await clock.advance(100);
  expect([startedAt, answeredAt]).toEqual([Array(20).fill(resumedAt), Array(20).fill(resumedAt)]);
});
