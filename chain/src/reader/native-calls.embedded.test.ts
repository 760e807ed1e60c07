import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { NativeCalls } from "./native-calls.ts";

/** A thread that makes one long call of SQLite. */
const program = `
  const { parentPort, workerData } = require("node:worker_threads");
  (async () => {
    const { guardCalls, NativeCalls } = await import(workerData.module);
    const { DatabaseSync } = await import("@photostructure/sqlite");
    const calls = new NativeCalls(workerData.memory);
    const database = guardCalls(new DatabaseSync(":memory:"), calls);
    const count = database.prepare(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT count(*) FROM n",
    );
    calls.started();
    parentPort.postMessage("started");
    count.all();
    parentPort.postMessage("returned");
  })();
`;
// Threads cannot load TypeScript.
const module = new URL("../../dist/reader/native-calls.js", import.meta.url).href;

it("a thread that its owner ends inside a call of SQLite ends itself after the call, and the process goes on", async () => {
  const calls = new NativeCalls();
  const worker = new Worker(program, { eval: true, workerData: { module, memory: calls.memory } });
  const messages: unknown[] = [];
  worker.on("message", (message) => messages.push(message));
  await once(worker, "message");
  const state = new Int32Array(calls.memory);
  while (state[0] === 0); // until the call begins
  if (calls.end()) await worker.terminate();
  else await once(worker, "exit");
  expect(messages).toEqual(["started"]);
});
