import { Worker } from "node:worker_threads";
import {
  READER_GRACE_MS_MAX,
  READER_OLD_MEBIBYTES_MAX,
  READER_START_TIME_MS_MAX,
  READER_YOUNG_MEBIBYTES_MAX,
} from "../limits.ts";
import type { FromReader, ReaderData, ReaderSettings, ToReader } from "../messages.ts";
import type { RpcRequest } from "../rpc/dispatch.ts";
import { fromErrorMessage, invalidParams, searchTooSlow, serverError } from "../rpc-error.ts";
import type { SharedLayer } from "../state/state-history.ts";
import { findWorkerFile } from "../worker-file.ts";
import { NativeCalls } from "../native-calls.ts";

/** Asks the chain's thread for the nodes that blocks after `after` overwrote; if `after` is undefined, for all such nodes that the thread keeps. */
export type ReadHistory = (after: bigint | undefined) => Promise<readonly SharedLayer[]>;

export interface ReaderThreadOptions {
  readonly settings: ReaderSettings;
  readonly readHistory: ReadHistory;
}

interface Waiting {
  readonly resolve: (json: string) => void;
  readonly reject: (error: Error) => void;
}

/** One thread that reads the chain's file. It answers one request at a time, and ends when a request takes too long or needs too much memory. */
export class ReaderThread {
  readonly #worker: Worker;
  readonly #nativeCalls = new NativeCalls();
  readonly #options: ReaderThreadOptions;
  readonly #exited: Promise<void>;
  readonly #ready: Promise<string>;
  #waiting: Waiting | undefined;
  #failure: Error | undefined;

  constructor(options: ReaderThreadOptions) {
    this.#options = options;
    const workerData: ReaderData = { ...options.settings, nativeCalls: this.#nativeCalls.memory };
    this.#worker = new Worker(findWorkerFile("reader-worker"), {
      workerData,
      resourceLimits: {
        maxOldGenerationSizeMb: READER_OLD_MEBIBYTES_MAX,
        maxYoungGenerationSizeMb: READER_YOUNG_MEBIBYTES_MAX,
      },
    });
    this.#nativeCalls.watch(this.#worker);
    this.#worker.on("message", (message: FromReader) => this.#receive(message));
    this.#worker.on("error", (error) => this.#fail(toFailure(error)));
    this.#exited = new Promise((resolve) => {
      this.#worker.once("exit", (code) => {
        this.#fail(new Error(`The reader of the chain ended with code ${code}.`));
        resolve();
      });
    });
    this.#ready = this.#wait(READER_START_TIME_MS_MAX, new Error("The reader of the chain did not start in time."));
    this.#ready.catch(() => undefined); // `untilReady` reports the failure.
  }

  get hasEnded(): boolean {
    return this.#failure !== undefined;
  }

  /** Resolves once the thread can answer; rejects if it does not start. */
  async untilReady(): Promise<void> {
    await this.#ready;
  }

  /** The result as JSON text. Call this once the thread is ready, and wait for the result before the next call. */
  async ask({ method, params }: RpcRequest): Promise<string> {
    try {
      this.#post({ kind: "request", method, params });
    } catch {
      throw invalidParams("invalid params: they are nested too deeply");
    }
    const { callTimeMsMax } = this.#options.settings;
    return this.#wait(callTimeMsMax + READER_GRACE_MS_MAX, tooSlow(method, callTimeMsMax));
  }

  /** Rejects the request in progress with `error` and ends the thread. */
  end(error: Error): Promise<void> {
    this.#fail(error);
    return this.#exited;
  }

  #wait(timeoutMs: number, late: Error): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      const timer = setTimeout(() => this.#fail(late), timeoutMs);
      const settled = (): void => {
        clearTimeout(timer);
        this.#waiting = undefined;
      };
      this.#waiting = {
        resolve: (json) => resolve((settled(), json)),
        reject: (error) => reject((settled(), error)),
      };
    });
  }

  #receive(message: FromReader): void {
    switch (message.kind) {
      case "ready":
        return this.#waiting?.resolve("");
      case "result":
        return this.#waiting?.resolve(message.json);
      case "error":
        return this.#waiting?.reject(fromErrorMessage(message.error));
      case "history":
        return void this.#passHistory(message.after);
    }
  }

  async #passHistory(after: bigint | undefined): Promise<void> {
    try {
      this.#post({ kind: "history", layers: await this.#options.readHistory(after) });
    } catch (error) {
      this.#fail(toFailure(error));
    }
  }

  #post(message: ToReader): void {
    this.#worker.postMessage(message, []);
  }

  #fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#waiting?.reject(error);
    if (this.#nativeCalls.end()) void this.#worker.terminate();
  }
}

function tooSlow(method: string, timeMs: number): Error {
  if (method === "eth_getLogs") return searchTooSlow(timeMs);
  return serverError(`execution aborted (timeout = ${timeMs}ms)`);
}

function toFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const isOutOfMemory = "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
  return isOutOfMemory ? serverError("execution aborted (out of memory)") : error;
}
