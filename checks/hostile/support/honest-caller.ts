import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** Publishes one small event after another and reads each back, like a client that knows nothing of an attack. */
export class HonestCaller implements AsyncDisposable {
  readonly #worker: Worker;

  constructor(url: string, topic: string) {
    this.#worker = new Worker(new URL("honest-caller.mjs", import.meta.url), { workerData: { url, topic } });
  }

  /** Returns the 95th percentile of the answer times, in milliseconds. @throws Error if a call got a wrong answer. */
  async stop(): Promise<number> {
    this.#worker.postMessage("stop", []);
    const [message] = await once(this.#worker, "message");
    const waitsMs = (message as number[]).toSorted((one, other) => one - other); // The worker sends it.
    return waitsMs[Math.floor(waitsMs.length * 0.95)] ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
