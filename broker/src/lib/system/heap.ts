import { setFlagsFromString } from "node:v8";

/** Heap growth that triggers a collection, in percent of the live heap. */
const heapGarbagePercentMax = 100;

/**
 * Makes this process collect garbage earlier. By default the engine lets the heap grow to four times the live data. Under load that was 100 MiB more
 * resident memory, for about 5 % less processor time. With 5,000 topics, 70 took 8 to 12 MiB less than 100, for 9 to 13 % more processor time.
 */
export function keepHeapSmall(): void {
  setFlagsFromString(`--heap-growing-percent=${heapGarbagePercentMax}`);
}
