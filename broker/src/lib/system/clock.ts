import { uptime } from "node:os";

const msPerSecond = 1_000;

/** Longest delay that a timer takes; a longer one would fire at once. */
const timerDelayMsMax = 2 ** 31 - 1;

/** The machine's clock and timers. */
export interface SystemClock {
  now(): number;
  monotonic(): number;
  after(delayMs: number, action: () => void): () => void;
  soon(action: () => void): void;
}

/** When the time of day jumps forward by more, in milliseconds, the machine may have slept. */
const jumpMsMax = 500;

/** Clocks of the machine, in milliseconds. A sleep of the machine halts that of the timers, and neither of the others. */
export interface ClockSources {
  readonly timer: () => number;
  /** Cheap to read, and set by whoever likes. */
  readonly day: () => number;
  /** Since the machine started, its sleep included; nobody can set it. It costs a file to read. */
  readonly uptime: () => number;
}

/** Milliseconds that only grow, also through a sleep of the machine, and never with a time of day that is set. */
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

/** Time from the machine. Its timers never keep the process alive. */
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
