import { setFlagsFromString } from "node:v8";

/** Heap growth that triggers a collection, in percent of the live heap. */
const heapGarbagePercentMax = 100;

/**
 * Sets how this process collects garbage.
 *
 * It collects earlier: by default V8 lets the heap grow to four times the live data. Under load that was 100 MiB more resident memory, for about
 * 5 % less processor time. With 5,000 topics, a value of 70 took 8 to 12 MiB less than 100, for 9 to 13 % more processor time.
 *
 * It collects young objects without helper threads: waking them takes more processor time than they save. On two processors, 256 connections published
 * 9 % more, and 5,000 topics took 4 to 8 % less processor time; a pause was 5.0 ms instead of 4.1 ms in the median.
 */
export function tuneCollector(): void {
  setFlagsFromString(`--heap-growing-percent=${heapGarbagePercentMax}`);
  setFlagsFromString("--no-parallel-scavenge");
}
