import type { BaseSequencer } from "vitest/node";

/** Paths of test files from the root of the repository. */
export const longest: readonly string[];

/** Vitest's order, but with the files of `longest` first. */
export const LongestFirst: typeof BaseSequencer;
