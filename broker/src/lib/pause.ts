import type { CancelSignal } from "./cancellation.ts";

/** Calls `action` once after `delayMs`; the returned function cancels it. */
export interface Timer {
  after(delayMs: number, action: () => void): () => void;
}

/** Waits `delayMs`, or until one of the signals aborts; never rejects. */
export function pause(timer: Timer, delayMs: number, ...signals: readonly CancelSignal[]): Promise<void> {
  if (signals.some(({ aborted }) => aborted)) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = (): void => {
      cancel();
      for (const signal of signals) signal.removeEventListener("abort", settle);
      resolve();
    };
    const cancel = timer.after(delayMs, settle);
    for (const signal of signals) signal.addEventListener("abort", settle, { once: true });
  });
}
