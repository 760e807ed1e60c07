import type { Caller } from "../../../engine/access/caller.ts";
import { rpcBatchRunningMax, rpcWholeBytesMax } from "../../limits.ts";
import type { RunningMembers } from "./running-members.ts";
import { Slice, type Slices } from "./slices.ts";

export interface BatchRunOptions<Response> {
  /** The run replaces each started member by undefined to free its memory: a member may have long parameters, and may take a while. */
  readonly members: unknown[];
  /** Length of the batch, in bytes. */
  readonly bodyBytes: number;
  /**
   * Starts a member, and calls `onAnswered` once, now or later. Returns a promise if the member runs here: if the promise rejects, there is no response.
   * Undefined if the member has been answered or handed over.
   */
  readonly answer: (member: unknown, onAnswered: (response: Response) => void) => Promise<void> | undefined;
  readonly slices: Slices;
  readonly runningMembers: RunningMembers;
  /** Once the caller is gone, the run starts no further member and frees those that wait: no budget counts them from then on. */
  readonly caller: Caller;
}

/**
 * Runs a JSON-RPC batch; its members are its requests. Starts them in order, so that the batch's publishes reach the engine in that order. Only a bounded
 * number run at once. Responses are in the order of the members.
 */
export class BatchRun<Response> {
  readonly #options: BatchRunOptions<Response>;
  readonly #responses: Response[] = [];
  readonly #failures: unknown[] = [];
  #running = 0;
  /** Number of members for which `answer` returned a promise that has not settled. */
  #promised = 0;
  /** Called when a member has ended, and when its promise has settled: another member may have room. */
  #onEnded = (): void => {};

  constructor(options: BatchRunOptions<Response>) {
    this.#options = options;
  }

  /** If the caller leaves meanwhile, returns at most the responses that come after that. */
  async run(): Promise<readonly Response[]> {
    const { signal } = this.#options.caller;
    const free = (): void => this.#free();
    signal.addEventListener("abort", free, { once: true });
    try {
      await this.#startAll();
      while (this.#running > 0) await this.#untilEnded();
    } finally {
      signal.removeEventListener("abort", free);
    }
    if (this.#failures.length > 0) throw this.#failures[0];
    return this.#responses;
  }

  async #startAll(): Promise<void> {
    const { members, slices, caller } = this.#options;
    const slice = new Slice(slices, caller);
    for (const index of members.keys()) {
      if (slice.isOver) await slice.next();
      while (!this.#hasRoom) await this.#untilEnded();
      if (caller.signal.aborted) return;
      const member = members[index];
      members[index] = undefined;
      this.#start(index, member);
    }
  }

  #free(): void {
    this.#options.members.length = 0;
    this.#responses.length = 0;
  }

  get #hasRoom(): boolean {
    if (this.#promised >= rpcBatchRunningMax) return false;
    const { bodyBytes, runningMembers } = this.#options;
    return this.#running < rpcBatchRunningMax || (bodyBytes <= rpcWholeBytesMax && runningMembers.hasRoom);
  }

  #start(index: number, member: unknown): void {
    this.#running += 1;
    this.#options.runningMembers.started();
    const onAnswered = (response: Response): void => {
      this.#responses[index] = response;
      this.#end();
    };
    const promise = this.#options.answer(member, onAnswered);
    if (promise !== undefined) void this.#follow(promise);
  }

  async #follow(promise: Promise<void>): Promise<void> {
    this.#promised += 1;
    try {
      await promise;
      this.#promised -= 1;
      this.#onEnded();
    } catch (error) {
      this.#failures.push(error);
      this.#promised -= 1;
      this.#end();
    }
  }

  #end(): void {
    this.#running -= 1;
    this.#options.runningMembers.ended();
    this.#onEnded();
  }

  #untilEnded(): Promise<void> {
    return new Promise((resolve) => {
      this.#onEnded = resolve;
    });
  }
}
