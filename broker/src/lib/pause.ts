import type { CancelSignal } from "./cancellation.ts";

/** Calls `action` once after `delayMs`; the returned function cancels it. */
export interface Timer {
  after(delayMs: number, action: () => void): () => void;
}

/** Waits `delayMs`, or until `signal` aborts; never rejects. */
export function pause(timer: Timer, delayMs: number, signal: CancelSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = (): void => {
      cancel();
      signal.removeEventListener("abort", settle);
      resolve();
    };
    const cancel = timer.after(delayMs, settle);
    signal.addEventListener("abort", settle, { once: true });
  });
}
