import type { Socket } from "node:net";
import { rpcBatchRunningMax } from "../../limits.ts";
import { Slice, type Slices } from "./slices.ts";

export interface BatchRunOptions<Response> {
  readonly members: readonly unknown[];
  readonly answer: (member: unknown) => Promise<Response>;
  readonly slices: Slices;
  /** Who asked; once it is gone no further member is started. */
  readonly connection: Socket;
}

/**
 * Starts the members of a batch in order, a bounded number at once, so that publishes of one batch reach the broker in that order. Responses stand
 * in the order of the members.
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
    const { members, slices, connection } = this.#options;
    const slice = new Slice(slices);
    for (const [index, member] of members.entries()) {
      await slice.pass();
      if (this.#running >= rpcBatchRunningMax) await this.#untilEnded();
      if (connection.destroyed) break;
      void this.#start(index, member);
    }
    while (this.#running > 0) await this.#untilEnded();
    if (this.#failures.length > 0) throw this.#failures[0];
    return this.#responses;
  }

  /** Never rejects. */
  async #start(index: number, member: unknown): Promise<void> {
    this.#running += 1;
    try {
      this.#responses[index] = await this.#options.answer(member);
    } catch (error) {
      this.#failures.push(error);
    }
    this.#running -= 1;
    this.#onEnded();
  }

  #untilEnded(): Promise<void> {
    return new Promise((resolve) => {
      this.#onEnded = resolve;
    });
  }
}
