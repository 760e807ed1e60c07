import { setTimeout as delay } from "node:timers/promises";
import { READER_PAUSE_AFTER_MS, READER_REQUESTS_MAX, READER_START_INTERVAL_MS } from "../limits.ts";
import type { RpcRequest } from "../rpc/dispatch.ts";
import { ProviderRpcError, RPC_ERROR_CODES } from "../rpc-error.ts";
import { ReaderThread, type ReaderThreadOptions } from "./reader-thread.ts";

/** Gets the milliseconds for which the thread worked on a request: without its wait for other requests, for a pause or for the thread's start. */
type OnWorked = (workedMs: number) => void;

interface Task {
  readonly request: RpcRequest;
  readonly onWorked: OnWorked;
  readonly resolve: (json: string) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads the chain for callers other than its owner. Its thread is not the one that makes blocks. A request that takes too long, or too much memory, ends the
 * thread and gets an error; the next request starts another thread. The reader pauses again and again, so that the chain can copy its log, which a
 * snapshot in use prevents. The pauses are short even after long requests, since the waiting requests are mostly those of other clients.
 */
export class SnapshotReader {
  readonly #options: ReaderThreadOptions;
  readonly #tasks: Task[] = [];
  readonly #stopping = new AbortController();
  #thread: ReaderThread | undefined;
  #startedAt = Number.NEGATIVE_INFINITY;
  #isWorking = false;
  /** How long requests have taken since the last pause, in milliseconds. */
  #busyMs = 0;

  constructor(options: ReaderThreadOptions) {
    this.#options = options;
  }

  /**
   * Answers a read-only method as JSON text, as of the newest block when the request's turn comes. If the thread got the request, calls `onWorked` before the
   * promise settles.
   * @throws ProviderRpcError with geth's code, or with 4900 after a stop; another Error if the thread does not start or ends by itself.
   */
  read(request: RpcRequest, onWorked: OnWorked = () => undefined): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#stopping.signal.aborted) return reject(stopped());
      if (this.#tasks.length >= READER_REQUESTS_MAX) return reject(tooMany());
      this.#tasks.push({ request, onWorked, resolve, reject });
      if (!this.#isWorking) void this.#work();
    });
  }

  /** Rejects waiting requests and terminates the thread. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const { reject } of this.#tasks.splice(0)) reject(stopped());
    await this.#thread?.end(stopped());
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift()) {
      try {
        task.resolve(await this.#ask(task));
      } catch (error) {
        task.reject(error);
      }
      if (this.#busyMs >= READER_PAUSE_AFTER_MS) await this.#pause();
    }
    this.#isWorking = false;
  }

  async #ask({ request, onWorked }: Task): Promise<string> {
    const thread = await this.#openThread();
    const askedAt = performance.now();
    try {
      return await thread.ask(request);
    } finally {
      const workedMs = performance.now() - askedAt;
      this.#busyMs += workedMs;
      onWorked(workedMs);
    }
  }

  async #pause(): Promise<void> {
    this.#busyMs = 0;
    await delay(READER_PAUSE_AFTER_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }

  async #openThread(): Promise<ReaderThread> {
    if (this.#thread?.hasEnded === false) return this.#thread;
    await this.#thread?.end(stopped());
    const waitMs = this.#startedAt + READER_START_INTERVAL_MS - performance.now();
    if (waitMs > 0) await delay(waitMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    if (this.#stopping.signal.aborted) throw stopped();
    this.#startedAt = performance.now();
    this.#thread = new ReaderThread(this.#options);
    await this.#thread.untilReady();
    return this.#thread;
  }
}

function stopped(): ProviderRpcError {
  return new ProviderRpcError(RPC_ERROR_CODES.disconnected, "The embedded chain is stopping.");
}

function tooMany(): ProviderRpcError {
  return new ProviderRpcError(
    RPC_ERROR_CODES.limitExceeded,
    `limit exceeded: more than ${READER_REQUESTS_MAX} requests are waiting, try later`,
  );
}
