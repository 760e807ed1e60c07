import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { NativeCalls } from "./native-calls.ts";

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
    calls.started();
    statement.all();
    parentPort.postMessage("returned");
  })();
`;
// Threads cannot load TypeScript.
const module = new URL("../../dist/reader/native-calls.js", import.meta.url).href;

it("a thread that its owner ends inside a call of SQLite ends itself after the call, and the process goes on", async () => {
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
