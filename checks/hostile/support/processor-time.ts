import { readFileSync } from "node:fs";

const nanosecondsPerMillisecond = 1e6;

export interface ThreadTimes {
  readonly ranMs: number;
  /** Time that the thread could run but waited for a processor. */
  readonly waitedMs: number;
}

/** Times of a process's main thread since its start (`schedstat` of Linux). */
export function mainThreadTimes(pid: number): ThreadTimes {
  const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ").map(Number);
  return { ranMs: ran / nanosecondsPerMillisecond, waitedMs: waited / nanosecondsPerMillisecond };
}
