interface Deadline {
  readonly timeoutMs: number;
  /** Aborts the task earlier. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a task whose signal aborts after a time, or with the given signal. Does not combine `AbortSignal.timeout` with another signal: Node 20 may collect
 * the timeout as garbage, and then it never aborts.
 */
export async function withDeadline<Result>(
  { timeoutMs, signal: outer }: Deadline,
  task: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ending = new AbortController();
  const end = (): void => ending.abort(outer?.reason);
  if (outer?.aborted === true) end();
  outer?.addEventListener("abort", end, { once: true });
  const timer = setTimeout(() => ending.abort(new DOMException("no answer in time", "TimeoutError")), timeoutMs);
  try {
    return await task(ending.signal);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", end);
  }
}
