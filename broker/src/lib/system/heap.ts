import { setFlagsFromString } from "node:v8";

/** Garbage that a heap may hold when it is collected, in percent of what lives in it. */
const heapGarbagePercentMax = 70;

/**
 * Has the heaps of this process collected before they are mostly garbage. Left alone, the engine lets them grow to four times what lives: under
 * load that was 100 MiB more resident memory, for about 5 % less processor time. With 5,000 topics, 70 takes 20 MiB less than 100.
 */
export function keepHeapSmall(): void {
  setFlagsFromString(`--heap-growing-percent=${heapGarbagePercentMax}`);
}
