import { type Caller as AnyCaller, type Owner, ownerOf } from "../../engine/access/caller.ts";
import { turnsSliceMs, turnTimeoutMs } from "../limits.ts";

/** Call it when the admitted call has ended. */
export type Leave = () => void;

/** Whoever calls over one connection by one protocol, compared by identity. Its waiting calls form one queue. */
type Caller = Pick<AnyCaller, "principal">;

interface Waiting {
  readonly resolve: (leave: Leave | undefined) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * A fair semaphore: limits the calls that run at once. The principals that wait take turns, one call each, and so do the callers of each principal: a
 * principal may have thousands of connections. After `turnsSliceMs` of turns, the event loop has its turn. The limits on connections and batches bound the
 * number of waiting calls.
 */
export class Turns {
  readonly #runningMax: number;
  /** Waiting calls by principal and caller; principals and callers in the order of their next turns. */
  readonly #waiting = new Map<Owner, Map<Caller, Set<Waiting>>>();
  #running = 0;
  #sliceBegan = 0;
  #isPaused = false;

  constructor(runningMax: number) {
    this.#runningMax = runningMax;
  }

  /** Returns at once if the call may run. Else waits until it may, for up to `turnTimeoutMs`; resolves with undefined after the timeout. */
  enter(caller: Caller): Leave | Promise<Leave | undefined> {
    if (this.#running < this.#runningMax && this.#waiting.size === 0) return this.#admit();
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#expire(caller, waiting), turnTimeoutMs);
      timer.unref(); // A broker that has stopped must not wait for the timer.
      const waiting: Waiting = { resolve, timer };
      const owner = ownerOf(caller.principal);
      const callers = this.#waiting.get(owner) ?? new Map<Caller, Set<Waiting>>();
      const calls = callers.get(caller) ?? new Set();
      this.#waiting.set(owner, callers.set(caller, calls.add(waiting)));
    });
  }

  #expire(caller: Caller, waiting: Waiting): void {
    const owner = ownerOf(caller.principal);
    const callers = this.#waiting.get(owner);
    const calls = callers?.get(caller);
    calls?.delete(waiting);
    if (calls?.size === 0) callers?.delete(caller);
    if (callers?.size === 0) this.#waiting.delete(owner);
    waiting.resolve(undefined);
  }

  #admit(): Leave {
    this.#running += 1;
    return () => {
      this.#running -= 1;
      this.#admitWaiting();
    };
  }

  #admitWaiting(): void {
    while (this.#running < this.#runningMax && this.#waiting.size > 0 && !this.#isPaused) {
      if (performance.now() - this.#sliceBegan >= turnsSliceMs) this.#pause();
      else this.#admitNext();
    }
  }

  #admitNext(): void {
    const next = takeTurn(this.#waiting, (callers) => takeTurn(callers, takeFirst));
    if (next === undefined) return;
    clearTimeout(next.timer);
    next.resolve(this.#admit());
  }

  #pause(): void {
    this.#isPaused = true;
    setImmediate(() => {
      this.#isPaused = false;
      this.#sliceBegan = performance.now();
      this.#admitWaiting();
    });
  }
}

/** Takes a call from the first group, whose next turn then comes after those of the others. */
function takeTurn<Key, Group extends { readonly size: number }>(
  groups: Map<Key, Group>,
  take: (group: Group) => Waiting | undefined,
): Waiting | undefined {
  for (const [key, group] of groups) {
    const taken = take(group);
    groups.delete(key);
    if (group.size > 0) groups.set(key, group);
    return taken;
  }
  return undefined;
}

function takeFirst(calls: Set<Waiting>): Waiting | undefined {
  const [first] = calls;
  if (first !== undefined) calls.delete(first);
  return first;
}
