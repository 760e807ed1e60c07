import type { BaseSequencer } from "vitest/node";

/** Paths of test files from the root of the repository. */
export const longest: readonly string[];

/** Paths of test files that wait for timers. */
export const waiting: readonly string[];

/** Vitest's order, but with the files of `longest` first, and those of `waiting` spread over the run. */
export const LongestFirst: typeof BaseSequencer;
