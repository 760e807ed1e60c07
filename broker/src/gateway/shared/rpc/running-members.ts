import { rpcRunningMax } from "../../limits.ts";

/** Counts the running members of all batches of an endpoint. */
export class RunningMembers {
  #count = 0;

  /** Whether a batch may run more than `rpcBatchRunningMax` members. */
  get hasRoom(): boolean {
    return this.#count < rpcRunningMax;
  }

  started(): void {
    this.#count += 1;
  }

  ended(): void {
    this.#count -= 1;
  }
}
