/** Longest delay that a timer takes; a longer one would fire at once. */
const timerDelayMsMax = 2 ** 31 - 1;

/** The machine's clock and timers. */
export interface SystemClock {
  now(): number;
  monotonic(): number;
  after(delayMs: number, action: () => void): () => void;
  soon(action: () => void): void;
}

/** Time from the machine. Its timers never keep the process alive. */
export function createSystemClock(): SystemClock {
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
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
