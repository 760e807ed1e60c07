import { defineConfig } from "vitest/config";

/** Nodes take over by the clock, and attackers take the processors: each such file runs when all else is done, one after another. */
const alone = [
  "checks/faults/cluster/**/*.test.ts",
  "checks/hostile/all-at-once.test.ts",
  "checks/hostile/memory.test.ts",
];

/** Tests that run at once wait for a chain's next block rather than for the processor. */
const waiting = { maxConcurrency: 64, testTimeout: 120_000, hookTimeout: 120_000 };

// Workspaces meet through their built doors (dist), so `npm test` builds first; see CONTRIBUTING.md.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["{wire,contracts,chain,broker}/src/**/*.test.ts", "tools/**/*.test.ts"],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: "checks",
          include: ["checks/**/*.test.ts"],
          exclude: alone,
          ...waiting,
        },
      },
      {
        test: {
          name: "alone",
          include: alone,
          fileParallelism: false,
          ...waiting,
        },
      },
    ],
    maxWorkers: 2,
  },
});
