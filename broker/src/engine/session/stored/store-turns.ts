import type { GroupId } from "../../../domain/group-id.ts";
import type { CancelSignal } from "../../../lib/cancellation.ts";
import { Semaphore, type SemaphoreOptions } from "../../../lib/semaphore.ts";

/**
 * Maximum number of calls of one kind that run at once in a group: thousands of clients that connect, subscribe or leave, and their shares, must not delay
 * the index, which uses the same store.
 */
export const storeTurnsMax = 5;

/** Bounds the calls of the store that many clients cause at once. */
export class StoreTurns {
  readonly #options: SemaphoreOptions;
  readonly #running = new Map<GroupId, Semaphore>();

  constructor(options: SemaphoreOptions = {}) {
    this.#options = options;
  }

  /**
   * Runs `task` in its turn; undefined, without running it, if `signal` aborts before that. Take the group's lock against rollbacks inside `task`,
   * not around this call: a rollback must not wait for tasks that have no turn yet. The task must not wait for another turn.
   */
  async run<T>(
    groupId: GroupId,
    task: () => Promise<T>,
    signal: CancelSignal,
  ): Promise<{ readonly result: T } | undefined> {
    const running = this.#running.get(groupId) ?? new Semaphore(storeTurnsMax, this.#options);
    this.#running.set(groupId, running);
    return running.run(async () => ({ result: await task() }), signal);
  }
}
