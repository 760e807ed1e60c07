import { setTimeout as delay } from "node:timers/promises";

/** The first pauses are short, to see a fast result soon. Later ones are longer, to leave the processor to the process that the test waits for. */
const pollIntervalMs = { first: 5, growth: 1.25, last: 50 };
const timeoutDefaultMs = 20_000;

/**
 * Polls `find` until it returns something other than undefined and false, and returns that. @throws Error with `what` after `timeoutMs`.
 */
export async function until<T>(
  what: string,
  find: () => T | undefined | false | Promise<T | undefined | false>,
  { timeoutMs = timeoutDefaultMs }: { readonly timeoutMs?: number } = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = pollIntervalMs.first; ; pauseMs = Math.min(pauseMs * pollIntervalMs.growth, pollIntervalMs.last)) {
    const found = await find();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`timeout after ${timeoutMs} ms: ${what}`);
    await delay(pauseMs);
  }
}

/** Polls `check` until it no longer throws. @throws its last error on timeout. */
export async function untilHolds(check: () => Promise<void>): Promise<void> {
  let problem: unknown;
  const holds = async (): Promise<boolean> => {
    try {
      await check();
      return true;
    } catch (error) {
      problem = error;
      return false;
    }
  };
  await until("the check passes", holds).catch(() => {
    throw problem;
  });
}
