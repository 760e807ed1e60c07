import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** Publishes one small event after another and reads each back, as a client does that knows nothing of an attack. */
export class HonestCaller implements AsyncDisposable {
  readonly #worker: Worker;

  constructor(url: string, topic: string) {
    this.#worker = new Worker(new URL("honest-caller.mjs", import.meta.url), { workerData: { url, topic } });
  }

  /** Answers in how many milliseconds 95 of 100 calls were answered. @throws Error when a call was not answered as it should be. */
  async stop(): Promise<number> {
    this.#worker.postMessage("stop", []);
    const [message] = await once(this.#worker, "message");
    const waitsMs = (message as number[]).toSorted((one, other) => one - other); // What the worker sends.
    return waitsMs[Math.floor(waitsMs.length * 0.95)] ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
