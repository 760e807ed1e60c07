import { defineConfig } from "vitest/config";

/** Nodes take over by the clock: two such files run at once and nothing else beside them. */
const clusters = ["checks/faults/cluster/**/*.test.ts"];

/** Attackers take all processors: each such file runs when all else is done, one after another. */
const alone = ["checks/hostile/all-at-once.test.ts", "checks/hostile/memory.test.ts"];

/** Tests that run at once wait for a chain's next block rather than for the processor. */
const waiting = { maxConcurrency: 64, testTimeout: 120_000, hookTimeout: 120_000 };

/** Files of a worker share the modules that they load, and so their state: to load them for each file takes longer than most tests. */
const shared = { isolate: false };

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
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
          ...shared,
        },
      },
      {
        test: {
          name: "checks",
          include: ["checks/**/*.test.ts"],
          exclude: [...clusters, ...alone],
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
          ...waiting,
          ...shared,
        },
      },
      {
        test: {
          name: "clusters",
          include: clusters,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
          ...waiting,
        },
      },
      {
        test: {
          name: "alone",
          include: alone,
          fileParallelism: false,
          sequence: { groupOrder: 3 },
          ...waiting,
        },
      },
    ],
  },
});
