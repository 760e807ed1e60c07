import { uptime } from "node:os";
import { describe, expect, it } from "vitest";
import { BlockClock, machineClocks } from "./block-clock.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const YEAR = 365 * 24 * HOUR;
const START = Date.UTC(2030, 0, 1);

/** Clocks that a test sets. */
class GivenClocks {
  #timeOfDay = START;
  #monotonic = 500;

  timeOfDay(): number {
    return this.#timeOfDay;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  pass(ms: number): void {
    this.#timeOfDay += ms;
    this.#monotonic += ms;
  }

  step(ms: number): void {
    this.#timeOfDay += ms;
  }
}

function create() {
  const clocks = new GivenClocks();
  const clock = new BlockClock(clocks);
  const sinceStart = (): number => clock.now() - START;
  return { clocks, sinceStart };
}

describe("BlockClock.now", () => {
  it("BlockClock.now equals the time of day while nobody sets the clock", () => {
    const { clocks, sinceStart } = create();
    clocks.pass(3 * HOUR);
    expect(sinceStart()).toBe(3 * HOUR);
  });

  it("BlockClock.now follows at once when the clock is set forward by an hour or back by six hours", () => {
    const { clocks, sinceStart } = create();
    clocks.step(HOUR);
    expect(sinceStart()).toBe(HOUR);
    clocks.step(-6 * HOUR);
    expect(sinceStart()).toBe(-5 * HOUR);
  });

  it("BlockClock.now ignores a step of ten years ahead if the clock is set back within ten minutes", () => {
    const { clocks, sinceStart } = create();
    clocks.step(10 * YEAR);
    expect(sinceStart()).toBe(0);
    clocks.pass(9 * MINUTE);
    expect(sinceStart()).toBe(9 * MINUTE);
    clocks.step(-10 * YEAR);
    clocks.pass(MINUTE);
    expect(sinceStart()).toBe(10 * MINUTE);
  });

  it("BlockClock.now follows a step of ten years once the step has lasted ten minutes", () => {
    const { clocks, sinceStart } = create();
    clocks.step(10 * YEAR);
    sinceStart();
    clocks.pass(10 * MINUTE);
    expect(sinceStart()).toBe(10 * YEAR + 10 * MINUTE);
    clocks.pass(SECOND);
    expect(sinceStart()).toBe(10 * YEAR + 10 * MINUTE + SECOND);
  });

  it("if the clock was right in between or is set again, BlockClock.now restarts the wait of ten minutes", () => {
    const { clocks, sinceStart } = create();
    clocks.step(YEAR);
    sinceStart();
    clocks.pass(9 * MINUTE);
    clocks.step(-YEAR);
    sinceStart();
    clocks.step(YEAR);
    sinceStart();
    clocks.pass(9 * MINUTE);
    clocks.step(YEAR);
    expect(sinceStart()).toBe(18 * MINUTE);
    clocks.pass(9 * MINUTE);
    expect(sinceStart()).toBe(27 * MINUTE);
    clocks.pass(MINUTE);
    expect(sinceStart()).toBe(2 * YEAR + 28 * MINUTE);
  });
});

it("machineClocks reads the machine's uptime as the monotonic clock", () => {
  expect(Math.abs(machineClocks.monotonic() - uptime() * SECOND)).toBeLessThan(SECOND);
});
