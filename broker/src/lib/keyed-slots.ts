import type { CancelSignal } from "./cancellation.ts";

/** The right of one task to run. */
export interface Slot {
  /** Frees the slot. Further calls have no effect. */
  leave(): void;
}

/**
 * A semaphore for each key: limits the tasks that run at once; the others wait in order. A task may free its slot before it ends. Tens of thousands
 * of tasks may wait, so a wait takes little memory.
 */
export class KeyedSlots<K> {
  readonly #perKey: number;
  readonly #queues = new Map<K, Queue>();
  #waiting = 0;

  constructor(perKey: number) {
    this.#perKey = perKey;
  }

  get waitingCount(): number {
    return this.#waiting;
  }

  /** Returns a slot, or a promise of one if the caller must wait. The promise resolves with undefined if `signal` aborts first. */
  take(key: K, signal: CancelSignal): Slot | Promise<Slot | undefined> {
    const queue = this.#queueOf(key);
    if (queue.taken < this.#perKey) {
      queue.taken += 1;
      return this.#slotOf(key, queue);
    }
    return this.#wait(queue, signal).then((isMine) => (isMine ? this.#slotOf(key, queue) : undefined));
  }

  #queueOf(key: K): Queue {
    const known = this.#queues.get(key);
    if (known !== undefined) return known;
    const queue: Queue = { taken: 0, waiting: new Set() };
    this.#queues.set(key, queue);
    return queue;
  }

  #wait({ waiting }: Queue, signal: CancelSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const abort = (): void => settle(false);
      const settle = (isMine: boolean): void => {
        waiting.delete(settle);
        this.#waiting -= 1;
        signal.removeEventListener("abort", abort);
        resolve(isMine);
      };
      waiting.add(settle);
      this.#waiting += 1;
      signal.addEventListener("abort", abort, { once: true });
    });
  }

  #slotOf(key: K, queue: Queue): Slot {
    let isTaken = true;
    return {
      leave: () => {
        if (isTaken) this.#giveBack(key, queue);
        isTaken = false;
      },
    };
  }

  /** Hands the slot directly to the longest waiter, so that no newcomer can take it. */
  #giveBack(key: K, queue: Queue): void {
    const [next] = queue.waiting;
    if (next !== undefined) {
      next(true);
      return;
    }
    queue.taken -= 1;
    if (queue.taken === 0) this.#queues.delete(key);
  }
}

interface Queue {
  taken: number;
  /** The functions that end the waits. */
  readonly waiting: Set<(isMine: boolean) => void>;
}
