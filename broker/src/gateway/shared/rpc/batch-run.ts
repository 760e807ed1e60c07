import type { Caller } from "../../../engine/access/caller.ts";
import { rpcBatchRunningMax } from "../../limits.ts";
import { Slice, type Slices } from "./slices.ts";

export interface BatchRunOptions<Response> {
  readonly members: readonly unknown[];
  /** Calls `onAnswered` once with the response, now or later, unless the returned promise rejects. */
  readonly answer: (member: unknown, onAnswered: (response: Response) => void) => Promise<void> | undefined;
  readonly slices: Slices;
  /** Once the caller is gone, no further member is started. */
  readonly caller: Caller;
}

/**
 * Starts the members of a batch in order, a bounded number at once, so that publishes of one batch reach the broker in that order. Responses are in
 * the order of the members.
 */
export class BatchRun<Response> {
  readonly #options: BatchRunOptions<Response>;
  readonly #responses: Response[] = [];
  readonly #failures: unknown[] = [];
  #running = 0;
  /** Called when a member has ended. */
  #onEnded = (): void => {};

  constructor(options: BatchRunOptions<Response>) {
    this.#options = options;
  }

  async run(): Promise<readonly Response[]> {
    const { members, slices, caller } = this.#options;
    const slice = new Slice(slices);
    for (const [index, member] of members.entries()) {
      if (slice.isOver) await slice.next();
      if (this.#running >= rpcBatchRunningMax) await this.#untilEnded();
      if (caller.signal.aborted) break;
      this.#start(index, member);
    }
    while (this.#running > 0) await this.#untilEnded();
    if (this.#failures.length > 0) throw this.#failures[0];
    return this.#responses;
  }

  #start(index: number, member: unknown): void {
    this.#running += 1;
    const onAnswered = (response: Response): void => {
      this.#responses[index] = response;
      this.#end();
    };
    this.#options.answer(member, onAnswered)?.catch((error: unknown) => {
      this.#failures.push(error);
      this.#end();
    });
  }

  #end(): void {
    this.#running -= 1;
    this.#onEnded();
  }

  #untilEnded(): Promise<void> {
    return new Promise((resolve) => {
      this.#onEnded = resolve;
    });
  }
}
