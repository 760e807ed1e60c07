import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Created once, because a new context for each call would count as used memory. */
const collect = findCollector();

/** Runs the garbage collector. A WeakRef keeps its target until the end of the turn that has made or read it. */
export function collectGarbage(): void {
  collect();
}

/** Bytes of the heap in use after a garbage collection. */
export function usedBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

function findCollector(): () => void {
  setFlagsFromString("--expose-gc");
  const found: unknown = runInNewContext("gc"); // The flag defines it for new contexts.
  if (typeof found !== "function") throw new Error("V8's garbage collector cannot be called");
  return () => void found();
}
