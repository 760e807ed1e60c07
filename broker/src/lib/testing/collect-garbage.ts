import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Runs the garbage collector. A WeakRef keeps its target until the end of the turn that has made or read it. */
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc"); // The flag defines it for new contexts.
  if (typeof collect !== "function") throw new Error("the engine's garbage collector cannot be called");
  collect();
}

/** Bytes of the heap in use after a garbage collection. */
export function usedBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
