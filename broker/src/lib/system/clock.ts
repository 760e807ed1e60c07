/** Longest delay that one timer supports; a longer one would fire at once. */
const timerDelayMsMax = 2 ** 31 - 1;

/** The machine's clock and timers. */
export interface SystemClock {
  now(): number;
  monotonic(): number;
  after(delayMs: number, action: () => void): () => void;
  soon(action: () => void): void;
}

/** A larger jump of the wall clock, in milliseconds, counts as sleep. */
const jumpMsMax = 500;

/**
 * Milliseconds that only increase, including time that the machine sleeps. Sleep stops the clock of the timers but not the wall clock. Setting the
 * wall clock forward counts as sleep; setting it back has no effect.
 */
export function createMonotonic(timerNow: () => number, dayNow: () => number): () => number {
  let timer = timerNow();
  let day = dayNow();
  let sleptMs = 0;
  return () => {
    const jumpMs = dayNow() - day - (timerNow() - timer);
    timer = timerNow();
    day = dayNow();
    if (jumpMs > jumpMsMax) sleptMs += jumpMs;
    return timer + sleptMs;
  };
}

/** The machine's clock. Its timers do not keep the process alive. */
export function createSystemClock(): SystemClock {
  return {
    now: () => Date.now(),
    monotonic: createMonotonic(
      () => performance.now(),
      () => Date.now(),
    ),
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
