import { defineConfig } from "vitest/config";

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
          fileParallelism: false,
          // Tests that run at once wait for a chain's next block rather than for the processor.
          maxConcurrency: 64,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
    maxWorkers: 2,
  },
});
