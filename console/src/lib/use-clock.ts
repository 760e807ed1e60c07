import { useSyncExternalStore } from "react";

const tickMs = 1000;
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Renders the calling component again each second, for texts such as `3 minutes ago`: a poll that brings no change renders nothing. */
export function useClock(): void {
  useSyncExternalStore(subscribe, readSecond);
}

/** One timer for all components, so that they render together. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, tickMs);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function tick(): void {
  for (const listener of listeners) listener();
}

function readSecond(): number {
  return Math.floor(Date.now() / tickMs);
}
