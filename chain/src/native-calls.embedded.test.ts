import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, it } from "vitest";
import { startEmbeddedChain } from "./embedded-chain.ts";
import { EXIT_WAIT_MS_MAX } from "./limits.ts";
import { NativeCalls } from "./native-calls.ts";
import { CHAIN_ID, FEES, PAUPER, SIGNER } from "./testing/client.ts";
import { mayWrite } from "./testing/may-write.ts";

/** A thread that stays in a call of SQLite until its owner opens the gate. */
const program = `
  const { parentPort, workerData } = require("node:worker_threads");
  (async () => {
    const { guardCalls, NativeCalls } = await import(workerData.module);
    const { DatabaseSync } = await import("@photostructure/sqlite");
    const calls = new NativeCalls(workerData.memory);
    const database = guardCalls(new DatabaseSync(":memory:"), calls);
    database.function("wait", () => {
      parentPort.postMessage("within the call");
      Atomics.wait(new Int32Array(workerData.gate), 0, 0);
      return 1;
    });
    const statement = database.prepare("SELECT wait()");
    statement.all();
    parentPort.postMessage("returned");
  })();
`;
// Threads and processes cannot load TypeScript.
const module = new URL("../dist/native-calls.js", import.meta.url).href;
const index = new URL("../dist/index.js", import.meta.url).href;

it("if the owner ends a thread during a call of SQLite, the thread exits after that call and the process continues", async () => {
  const calls = new NativeCalls();
  const gate = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const worker = new Worker(program, { eval: true, workerData: { module, memory: calls.memory, gate } });
  const messages: unknown[] = [];
  worker.on("message", (message) => messages.push(message));
  await once(worker, "message");
  const mayTerminate = calls.end();
  if (mayTerminate) void worker.terminate();
  Atomics.store(new Int32Array(gate), 0, 1);
  Atomics.notify(new Int32Array(gate), 0);
  await once(worker, "exit");
  expect([mayTerminate, messages]).toEqual([false, ["within the call"]]);
});

/** A process with three threads that never return from a native call. It prints how long it waits for them when it exits, in milliseconds. */
const stuck = `
  const { EventEmitter } = require("node:events");
  let startedAt = 0;
  process.on("exit", () => { startedAt = performance.now(); });
  (async () => {
    const { NativeCalls } = await import(process.env.MODULE);
    process.on("exit", () => console.log(performance.now() - startedAt));
    for (let thread = 0; thread < 3; thread += 1) new NativeCalls().watch(new EventEmitter());
    process.exit(3);
  })();
`;

it("a process that exits waits once for all threads in calls of SQLite", async () => {
  const env = { MODULE: module };
  const child = spawn(process.execPath, ["--eval", stuck], { env, stdio: ["ignore", "pipe", "inherit"] });
  const [printed, exited] = await Promise.all([text(child.stdout), once(child, "exit")]);
  expect(exited).toEqual([3, null]);
  expect(Number(printed)).toBeGreaterThanOrEqual(EXIT_WAIT_MS_MAX - 1); // Timers may be a little early.
  expect(Number(printed)).toBeLessThan(2 * EXIT_WAIT_MS_MAX);
});

/** A process that publishes when it gets a first message. When it gets a second one, it exits with code 3, and stops its chain before if STOPS is set. */
const broker = `
  const { once } = require("node:events");
  const { MODULE: module, FILE: file, RAW: raw, STOPS: stops } = process.env;
  (async () => {
    const { startEmbeddedChain } = await import(module);
    const chain = await startEmbeddedChain({ file, chainId: ${CHAIN_ID}, genesisAccounts: [] });
    process.send("started");
    await once(process, "message");
    chain.submit(Buffer.from(raw, "hex")).catch(() => undefined);
    await once(process, "message");
    if (stops) await chain.stop(0);
    process.exit(3);
  })();
`;

/** Makes the call of SQLite that adds a block take a few tenths of a second. */
const slowBlocks = `
  CREATE VIEW numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT i FROM n;
  CREATE TRIGGER slow BEFORE INSERT ON blocks BEGIN SELECT count(*) FROM numbers; END;
`;

it.each(["exits", "stops its chain"])(
  "a process that %s while SQLite adds a block keeps its exit code",
  async (way) => {
    const folder = await mkdtemp(join(tmpdir(), "stele-native-calls-"));
    const file = join(folder, "chain.db");
    await (await startEmbeddedChain({ file, chainId: CHAIN_ID, genesisAccounts: [SIGNER.address] })).stop();
    const other = new DatabaseSync(file);
    other.exec(slowBlocks);
    const fields = { type: "eip1559", chainId: CHAIN_ID, ...FEES, gas: 21_000n, nonce: 0, value: 1n } as const;
    const raw = (await SIGNER.signTransaction({ ...fields, to: PAUPER.address })).slice(2);
    const env = { MODULE: index, FILE: file, RAW: raw, STOPS: way === "exits" ? "" : "yes" };
    const child = spawn(process.execPath, ["--eval", broker], { env, stdio: ["ignore", "inherit", "inherit", "ipc"] });
    const exited = once(child, "exit");
    await Promise.race([once(child, "message"), exited]);
    child.send("publish");
    const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
    while (isRunning() && mayWrite(other)) await setImmediate(); // until the block begins
    child.send("end");
    expect(await exited).toEqual([3, null]);
    other.close();
    await rm(folder, { recursive: true });
  },
);
