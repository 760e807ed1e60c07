import { expect, it } from "vitest";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { HeldRefusals, refusalHeldMsMax } from "./held-refusals.ts";

const count = 100;
const stepMs = 25;

it("spreads simultaneous refusals evenly over the second half of the longest wait", async () => {
  const clock = new VirtualClock();
  const refusals = new HeldRefusals(clock);
  let answered = 0;
  for (let index = 0; index < count; index += 1) refusals.hold(() => void (answered += 1));
  const bySteps: number[] = [];
  for (let at = 0; at < refusalHeldMsMax; at += stepMs) {
    const before = answered;
    await clock.advance(stepMs);
    bySteps.push(answered - before);
  }
  expect(answered).toBe(count);
  const half = bySteps.length / 2;
  expect(bySteps.slice(0, half - 1).every((step) => step === 0)).toBe(true);
  expect(Math.max(...bySteps)).toBeLessThan((2 * count) / half);
});
