import { expect, it } from "vitest";
import { TimeSlices } from "./time-slices.ts";

const sliceMs = 5;

/** A simulated event loop: work advances its time, and the test runs its turns. */
class ManualTurns {
  now = 0;
  #due: (() => void)[] = [];

  monotonic(): number {
    return this.now;
  }

  soon(action: () => void): void {
    this.#due.push(action);
  }

  /** Whether anybody requested a turn. */
  get isAwaited(): boolean {
    return this.#due.length > 0;
  }

  /** Runs what was due before this turn, and its microtasks. */
  async turn(): Promise<void> {
    const due = this.#due;
    this.#due = [];
    for (const action of due) {
      action();
      for (let step = 0; step < 10; step += 1) await Promise.resolve();
    }
  }
}

async function work(slices: TimeSlices, turns: ManualTurns, onStep: () => void): Promise<void> {
  for (let step = 0; step < 6; step += 1) {
    turns.now += 2;
    onStep();
    await slices.pause();
  }
}

it("lets work continue until its slice is used up, and resumes it in a later turn", async () => {
  const turns = new ManualTurns();
  const slices = new TimeSlices(turns);
  expect(slices.pause()).toBeUndefined();
  turns.now += sliceMs - 1;
  expect(slices.pause()).toBeUndefined();
  turns.now += 1;
  let isResumed = false;
  const waiting = slices.pause()?.then(() => (isResumed = true));
  expect(isResumed).toBe(false);
  await turns.turn();
  await waiting;
  expect(isResumed).toBe(true);
});

it("gives a new slice in a new turn", async () => {
  const turns = new ManualTurns();
  const slices = new TimeSlices(turns);
  expect(slices.pause()).toBeUndefined();
  await turns.turn();
  turns.now += 10 * sliceMs;
  expect(slices.pause()).toBeUndefined();
});

it("never holds a turn for longer than two slices and a step, and resumes tasks in order", async () => {
  const turns = new ManualTurns();
  const slices = new TimeSlices(turns);
  const steps: number[] = [];
  const held: number[] = [];
  const tasks = Array.from({ length: 100 }, async (_, task) => work(slices, turns, () => steps.push(task)));
  // Some turns resume nobody: the slice was used up before them.
  while (turns.isAwaited) {
    const before = turns.now;
    await turns.turn();
    held.push(turns.now - before);
  }
  await Promise.all(tasks);
  expect(steps).toHaveLength(600);
  expect(Math.max(...held)).toBeLessThanOrEqual(2 * sliceMs + 2);
  expect(steps.slice(100, 200).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, task) => task));
});

it("lets a resumed task continue for a while before it yields to waiting tasks", async () => {
  const turns = new ManualTurns();
  const slices = new TimeSlices(turns);
  expect(slices.pause()).toBeUndefined();
  turns.now += sliceMs;
  const resumed: string[] = [];
  let isYielding: boolean | undefined;
  const first = slices.pause()?.then(() => {
    resumed.push("first");
    expect(slices.pause()).toBeUndefined();
    turns.now += 0.25;
    isYielding = slices.pause() !== undefined;
    return undefined;
  });
  const second = slices.pause()?.then(() => resumed.push("second"));
  while (turns.isAwaited) await turns.turn();
  await Promise.all([first, second]);
  expect(resumed).toEqual(["first", "second"]);
  expect(isYielding).toBe(true);
});
