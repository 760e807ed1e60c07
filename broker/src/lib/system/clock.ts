import { uptime } from "node:os";

const msPerSecond = 1_000;

/** Longest delay that one timer supports; a longer one would fire at once. */
const timerDelayMsMax = 2 ** 31 - 1;

/** The machine's clock and timers. */
export interface SystemClock {
  now(): number;
  monotonic(): number;
  after(delayMs: number, action: () => void): () => void;
  soon(action: () => void): void;
}

/** If the wall clock jumps forward by more than this, in milliseconds, the machine may have slept. */
const jumpMsMax = 500;

/** Clocks of the machine, in milliseconds. Sleep stops only the clock of the timers. */
export interface ClockSources {
  readonly timer: () => number;
  /** The wall clock: cheap to read, and anybody can set it. */
  readonly day: () => number;
  /** Time since the machine started, including sleep; nobody can set it. Each call reads a file. */
  readonly uptime: () => number;
}

/** Milliseconds that only increase, including time that the machine sleeps. Setting the wall clock has no effect. */
export function createMonotonic(sources: ClockSources): () => number {
  const start = { timer: sources.timer(), uptime: sources.uptime() };
  let last = { timer: start.timer, day: sources.day() };
  let sleptMs = 0;
  return () => {
    const now = { timer: sources.timer(), day: sources.day() };
    const jumpMs = now.day - last.day - (now.timer - last.timer);
    last = now;
    if (jumpMs > jumpMsMax) sleptMs = Math.max(sleptMs, sources.uptime() - start.uptime - (now.timer - start.timer));
    return now.timer + sleptMs;
  };
}

/** The machine's clock. Its timers do not keep the process alive. */
export function createSystemClock(): SystemClock {
  return {
    now: () => Date.now(),
    monotonic: createMonotonic({
      timer: () => performance.now(),
      day: () => Date.now(),
      uptime: () => uptime() * msPerSecond,
    }),
    after: startTimer,
    soon: (action) => void setImmediate(action),
  };
}

function startTimer(delayMs: number, action: () => void): () => void {
  let timer = armTimer(delayMs);
  return () => clearTimeout(timer);

  function armTimer(remainingMs: number): NodeJS.Timeout {
    const stepMs = Math.min(remainingMs, timerDelayMsMax);
    const step = setTimeout(() => {
      if (remainingMs <= stepMs) action();
      else timer = armTimer(remainingMs - stepMs);
    }, stepMs);
    return step.unref();
  }
}
