import { setTimeout as delay } from "node:timers/promises";

/** The first pause is short, so that what is there at once is seen at once; a longer wait leaves the processor to what is waited for. */
const pollIntervalMs = { first: 5, growth: 1.25, last: 50 };
const timeoutDefaultMs = 20_000;

/**
 * Answers what `find` gives once it is neither undefined nor false. @throws Error naming `what` when that takes longer than `timeoutMs`.
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
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await delay(pauseMs);
  }
}

/** Until `check` no longer throws. @throws what it threw last when that takes too long. */
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
  await until("it holds", holds).catch(() => {
    throw problem;
  });
}
