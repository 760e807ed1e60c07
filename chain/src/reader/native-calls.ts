import type { DatabaseSyncInstance, StatementSyncInstance } from "@photostructure/sqlite";

/** The states of a thread, in memory that it shares with its owner. A thread starts with native calls: those that load an addon and open the file. */
const STATES = { free: 0, inCall: 1, ending: 2 } as const;

/**
 * Keeps an owner from terminating its thread while a native addon runs there: an addon that cannot return into a terminated thread ends the whole process.
 * Instead, such a thread ends itself when the native call has returned.
 */
export class NativeCalls {
  /** Pass it to the other thread. */
  readonly memory: SharedArrayBuffer;
  readonly #state: Int32Array;

  constructor(memory?: SharedArrayBuffer) {
    this.memory = memory ?? new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    this.#state = new Int32Array(this.memory);
    if (memory === undefined) Atomics.store(this.#state, 0, STATES.inCall);
  }

  /** The owner calls this to end the thread. Returns whether the owner may terminate it at once; if not, the thread is in a native call and ends itself. */
  end(): boolean {
    return Atomics.exchange(this.#state, 0, STATES.ending) !== STATES.inCall;
  }

  /** The thread calls this once it has started. */
  started(): void {
    this.#change(STATES.inCall, STATES.free);
  }

  /** Runs a native call in the thread. */
  run<Result>(call: () => Result): Result {
    this.#change(STATES.free, STATES.inCall);
    try {
      return call();
    } finally {
      this.#change(STATES.inCall, STATES.free);
    }
  }

  #change(from: number, to: number): void {
    if (Atomics.compareExchange(this.#state, 0, from, to) !== from) process.exit(); // Ends this thread only.
  }
}

/** Lets the calls of SQLite that a reader makes run as native calls. */
export function guardCalls(database: DatabaseSyncInstance, calls: NativeCalls): DatabaseSyncInstance {
  const exec = database.exec.bind(database);
  const prepare = database.prepare.bind(database);
  return Object.defineProperties(database, {
    exec: { value: (sql: string) => calls.run(() => exec(sql)) },
    prepare: { value: (sql: string) => guardStatement(prepare(sql), calls) },
  });
}

function guardStatement(statement: StatementSyncInstance, calls: NativeCalls): StatementSyncInstance {
  const get = statement.get.bind(statement);
  const all = statement.all.bind(statement);
  return Object.defineProperties(statement, {
    get: { value: (...parameters: Parameters<typeof get>) => calls.run(() => get(...parameters)) },
    all: { value: (...parameters: Parameters<typeof all>) => calls.run(() => all(...parameters)) },
  });
}
