interface TimeLimit {
  /** Aborts the task's signal too, with its own reason. */
  readonly signal: AbortSignal;
  readonly ms: number;
  /** The reason of the task's signal after `ms`. */
  readonly toReason: () => unknown;
}

/**
 * Runs a task with a signal that ends it in time. Does not use `AbortSignal.any`: Node 20 may garbage-collect the combined signal, and then a hung task does
 * not end.
 */
export async function withTimeLimit<Result>(
  { signal, ms, toReason }: TimeLimit,
  task: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ending = new AbortController();
  const end = (): void => ending.abort(signal.reason);
  const timer = setTimeout(() => ending.abort(toReason()), ms);
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  try {
    return await task(ending.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
  }
}
