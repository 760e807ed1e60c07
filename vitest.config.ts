import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./tools/longest-first.mjs";
import { useMemoryFolder } from "./tools/memory-folder.mjs";

// People look at the screenshots after the run, so they are outside the temporary folder.
process.env["CHECKS_PICTURES"] ??= join(tmpdir(), "stele-console-pictures");
useMemoryFolder();

/** Tests beside the source that start a PostgreSQL server, a chain (anvil or the embedded one), a whole broker, or processes that they kill. */
const servers = [
  "{broker,contracts}/src/**/*.anvil.test.ts",
  "{broker,chain,contracts}/src/**/*.embedded{,.prop}.test.ts",
  "chain/src/embedded-chain{,.*}.test.ts",
  "contracts/src/gas-snapshot.test.ts",
  "broker/src/compose/{backup,cluster,hung-stop,proof,refused,scrub,start-server}.test.ts",
  "broker/src/ledger/evm/evm-ledger.writer.*.test.ts",
  "broker/src/ledger/evm/registry/own-writers.test.ts",
  "broker/src/store/{adapters-agree.prop,sql/kill,sql/migrations/migrations}.test.ts",
  "broker/src/store/sql/postgres/**/*.test.ts",
  "broker/src/verify/{odd-node,unread-events,verify}.test.ts",
  "tools/{failures,postgres-server,test}.test.ts",
];

/** Random histories of the engine and of several nodes: many steps for each of many seeds, in virtual time. */
const histories = ["broker/src/engine/**/*.prop.test.ts", "broker/src/gateway/**/*.cluster.prop.test.ts"];

/** Attackers take all processors, and delays of an event loop are measured: each such file runs when all else is done, one after another. */
const alone = [
  "checks/hostile/all-at-once.test.ts",
  "checks/hostile/event-loop.test.ts",
  "checks/hostile/memory.test.ts",
];

/** Node.js loads what other workspaces have built: it is plain JavaScript, and the test runner would transform hundreds of files again. */
const builtFiles = /\/(?:eth|contracts|chain|wire|client|console|broker)\/dist\//;

/**
 * Most code of a test runs a few times, and V8 optimises much of it just before it ends. With 15 times the usual delay, unit tests and random histories take
 * 17 % less processor time. Newer versions of Node.js refuse this flag.
 */
const lateOptimizer = process.versions.node.startsWith("20.") ? ["--interrupt-budget=1000000"] : [];

/** Tests make much garbage that does not last: with more room for it, and without helper threads for it, they take 7 % less processor time. */
const execArgv = ["--max-semi-space-size=64", "--single-threaded-gc", ...lateOptimizer];

/** Time limit of `expect.poll`, in milliseconds: the default of 1,000 is too short while other tests keep the processors busy. */
const expect = { poll: { timeout: 30_000 } };

/** Longest value that the message of a failed assertion shows whole, in characters: with the default of 40, it cuts off what an error says. */
const chaiConfig = { truncateThreshold: 400 };

/**
 * The next run reads transformed modules from `node_modules`: unit tests take a sixteenth less processor time. A module is transformed again if its text, this
 * file or the lock file has changed. If only a tsconfig or the `exports` of a package.json has changed, delete the modules with `npx vitest --clearCache`:
 * their text also holds resolved addresses of other workspaces. Old modules stay until the lock file changes.
 */
const experimental = { fsModuleCache: true };

/** Files of a worker share the modules that they load, and so their state: to load them for each file takes longer than most tests. */
const shared = { isolate: false, execArgv, expect, chaiConfig, server: { deps: { external: [builtFiles] } } };

/** Random histories get their seed here. */
const seeded = { setupFiles: ["checks/harness/history-seed.ts"] };

/** These keep a processor busy most of the time: one more at once than the smallest machine has processors. */
const computing = { maxWorkers: 3, sequence: { groupOrder: 0 }, testTimeout: 60_000, hookTimeout: 60_000, ...shared };

/** These also wait for other processes, blocks and leases. On average each uses half a processor. */
const waiting = { maxWorkers: 4, sequence: { groupOrder: 1 }, ...shared };

/** Tests of a file that run at once wait for a chain's next block rather than for the processor. */
const patient = { maxConcurrency: 64, testTimeout: 120_000, hookTimeout: 120_000 };

// Workspaces meet through their built output (dist), so `npm test` builds first; see CONTRIBUTING.md.
export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    experimental,
    projects: [
      {
        test: {
          name: "unit",
          include: ["{eth,wire,contracts,chain,client,console,broker}/src/**/*.test.ts", "tools/**/*.test.ts"],
          exclude: [...servers, ...histories],
          ...computing,
        },
      },
      {
        test: { name: "histories", include: histories, ...seeded, ...computing },
      },
      {
        test: {
          name: "servers",
          include: servers,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          ...seeded,
          ...waiting,
        },
      },
      {
        test: {
          name: "checks",
          include: ["checks/**/*.test.ts"],
          exclude: alone,
          ...waiting,
          ...patient,
        },
      },
      {
        test: {
          name: "alone",
          include: alone,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
          ...patient,
        },
      },
    ],
  },
});
