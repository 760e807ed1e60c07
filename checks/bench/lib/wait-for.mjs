import { setTimeout as wait } from "node:timers/promises";

const pollMs = 10;
const timeoutMs = 120_000;

/** Waits until the condition holds. @param {string} what @param {() => Promise<boolean>} condition */
export async function waitFor(what, condition) {
  const endAt = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > endAt) throw new Error(`timeout after ${timeoutMs} ms: ${what}`);
    await wait(pollMs);
  }
}
