import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** How long calls took, in milliseconds. */
export interface CallTimes {
  readonly wallMs: number;
  /** The wall time, or the processor time of the broker meanwhile if that is less. */
  readonly waitMs: number;
}

/** Publishes one small event after another and reads each back, like a client that knows nothing of an attack. */
export class HonestCaller implements AsyncDisposable {
  readonly #worker: Worker;
  /** Rejects if a call gets a wrong answer. */
  readonly #calls: Promise<readonly CallTimes[]>;

  constructor(broker: { readonly url: string; readonly pid: number }, topic: string) {
    const { url, pid } = broker;
    this.#worker = new Worker(new URL("honest-caller.mjs", import.meta.url), { workerData: { url, pid, topic } });
    this.#calls = once(this.#worker, "message").then(([calls]) => calls as readonly CallTimes[]); // As honest-caller.mjs sends it.
    this.#calls.catch(() => {}); // `stop` throws the error.
  }

  /** Stops the calls; returns the 95th percentile of both times. @throws Error if a call got a wrong answer. */
  async stop(): Promise<CallTimes> {
    this.#worker.postMessage("stop", []);
    const calls = await this.#calls;
    return {
      wallMs: percentile95(calls.map(({ wallMs }) => wallMs)),
      waitMs: percentile95(calls.map(({ waitMs }) => waitMs)),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}

function percentile95(timesMs: readonly number[]): number {
  return timesMs.toSorted((one, other) => one - other)[Math.floor(timesMs.length * 0.95)] ?? 0;
}
