import { expect, it } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import { silentLogger } from "../../lib/logger.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { Recurrence } from "./recurrence.ts";

function setUp(task: (time: number) => Promise<void> = async () => {}) {
  const clock = new VirtualClock();
  const recurrence = new Recurrence({ clock, logger: silentLogger, everyMs: 1_000, restMs: 100, failed: "not done" });
  const ending = new AbortController();
  const begun = clock.now();
  const times: number[] = [];
  const once = (): Promise<void> => {
    times.push(clock.now() - begun);
    return task(times.length);
  };
  return { clock, recurrence, ending, times, ended: recurrence.run(once, ending.signal) };
}

it("runs the task at once, then periodically, even after a failure", async () => {
  const { clock, times } = setUp(() => Promise.reject(new Error("no connection")));
  await clock.advance(2_500);
  expect(times).toEqual([0, 1_000, 2_000]);
});

it("runs the task once for several asks: at once, or after the shortest rest if a run has just ended", async () => {
  const { clock, recurrence, times } = setUp();
  await clock.advance(300);
  recurrence.ask();
  recurrence.ask();
  await clock.settle();
  recurrence.ask();
  recurrence.ask();
  await clock.advance(600);
  expect(times).toEqual([0, 300, 400]);
});

it("an ask during a run causes a run after it, never a concurrent one", async () => {
  const gate = createDeferred<void>();
  const { clock, recurrence, times } = setUp((time) => (time === 1 ? gate.promise : Promise.resolve()));
  await clock.advance(500);
  recurrence.ask();
  await clock.advance(500);
  gate.resolve();
  await clock.advance(150);
  expect(times).toEqual([0, 1_100]);
});

it("the method run returns as soon as its signal aborts, even if the task hangs", async () => {
  const { clock, ending, ended, times } = setUp(() => new Promise(() => {}));
  await clock.settle();
  ending.abort();
  await ended;
  await clock.advance(5_000);
  expect(times).toEqual([0]);
});
