import type { Worker } from "node:worker_threads";
import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";
import { EXIT_WAIT_MS_MAX } from "./limits.ts";

/** Flags of a thread, in memory that it shares with its owner. A thread starts as if in a native call, since it loads an addon. */
const IN_CALL = 1;
const ENDING = 2;

/** The flags of the threads that this thread ends when it exits. */
const watched = new Set<NativeCalls>();
// The end of a process terminates its threads.
process.on("exit", () => {
  for (const calls of watched) calls.end();
  const endsAt = performance.now() + EXIT_WAIT_MS_MAX;
  for (const calls of watched) calls.waitForCall(endsAt);
});

/**
 * Keeps an owner from terminating its thread while a native addon runs there: if the addon then cannot return into the thread, the whole process ends. Instead,
 * such a thread ends itself when the native call has returned.
 */
export class NativeCalls {
  /** Pass it to the other thread. */
  readonly memory: SharedArrayBuffer;
  readonly #flags: Int32Array;

  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    this.#flags = new Int32Array(this.memory);
    if (memory === undefined) Atomics.store(this.#flags, 0, IN_CALL);
  }

  /** The owner calls this with the thread, so that an end of the process ends the thread first. */
  watch(thread: Worker): void {
    watched.add(this);
    thread.once("exit", () => watched.delete(this));
  }

  /** The owner calls this to end the thread. Returns whether the owner may terminate it at once; if not, the thread is in a native call and ends itself. */
  end(): boolean {
    return (Atomics.or(this.#flags, 0, ENDING) & IN_CALL) === 0;
  }

  /** After `end`, blocks the owner until the native call has returned, at most until `endsAt` on the clock of `performance.now`. */
  waitForCall(endsAt: number): void {
    Atomics.wait(this.#flags, 0, IN_CALL | ENDING, endsAt - performance.now());
  }

  /** The thread calls this if it will make no native call: an owner that exits at once need not wait. */
  noneFollow(): void {
    if ((Atomics.and(this.#flags, 0, ~IN_CALL) & ENDING) !== 0) this.#exit();
  }

  /** Runs a native call in the thread. Once an addon is loaded, all native calls must go through here. */
  run<Result>(call: () => Result): Result {
    if ((Atomics.or(this.#flags, 0, IN_CALL) & ENDING) !== 0) this.#exit();
    try {
      return call();
    } finally {
      if ((Atomics.and(this.#flags, 0, ~IN_CALL) & ENDING) !== 0) this.#exit();
    }
  }

  #exit(): never {
    Atomics.and(this.#flags, 0, ~IN_CALL);
    Atomics.notify(this.#flags, 0);
    return process.exit(); // Ends this thread only.
  }
}

/** From now on, runs a thread's calls of the methods below on an open database as native calls. Use no other methods. */
export function guardCalls(database: DatabaseSyncInstance, calls: NativeCalls): DatabaseSyncInstance {
  const exec = database.exec.bind(database);
  const prepare = database.prepare.bind(database);
  const close = database.close.bind(database);
  return Object.defineProperties(database, {
    exec: { value: (sql: string) => calls.run(() => exec(sql)) },
    prepare: {
      value: (sql: string) =>
        guardStatement(
          calls.run(() => prepare(sql)),
          calls,
        ),
    },
    close: { value: () => calls.run(close) },
  });
}

function guardStatement(statement: StatementSyncInstance, calls: NativeCalls): StatementSyncInstance {
  const get = statement.get.bind(statement);
  const all = statement.all.bind(statement);
  const run = statement.run.bind(statement);
  return Object.defineProperties(statement, {
    get: { value: (...parameters: Parameters<typeof get>) => calls.run(() => get(...parameters)) },
    all: { value: (...parameters: Parameters<typeof all>) => calls.run(() => all(...parameters)) },
    run: { value: (...parameters: Parameters<typeof run>) => calls.run(() => run(...parameters)) },
  });
}
