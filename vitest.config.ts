import { defineConfig } from "vitest/config";

/** Tests beside the source that start a server of PostgreSQL or a node of a chain. */
const servers = [
  "{broker,contracts}/src/**/*.anvil.test.ts",
  "contracts/src/gas-snapshot.test.ts",
  "broker/src/compose{,-cluster}.test.ts",
  "broker/src/ledger/evm/registry/own-writers.test.ts",
  "broker/src/store/{adapters-agree.prop,sql/migrations}.test.ts",
  "broker/src/store/sql/postgres/**/*.test.ts",
];

/** Nodes take over by the clock: two such files run at once and nothing else beside them. */
const clusters = ["checks/faults/cluster/**/*.test.ts"];

/** Attackers take all processors: each such file runs when all else is done, one after another. */
const alone = ["checks/hostile/all-at-once.test.ts", "checks/hostile/memory.test.ts"];

/** Files of a worker share the modules that they load, and so their state: to load them for each file takes longer than most tests. */
const shared = { isolate: false };

const computing = {
  testTimeout: 30_000,
  hookTimeout: 60_000,
  maxWorkers: 2,
  sequence: { groupOrder: 0 },
  ...shared,
};

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
          exclude: servers,
          ...computing,
        },
      },
      {
        test: {
          name: "servers",
          include: servers,
          ...computing,
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
