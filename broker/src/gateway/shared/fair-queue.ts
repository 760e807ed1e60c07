import { type Caller, type Owner, ownerOf } from "../../engine/access/caller.ts";

/** Whoever calls over one connection by one protocol, compared by identity. Its waiting calls form one queue. */
export type QueuedCaller = Pick<Caller, "principal">;

/**
 * Calls that wait. The principals that wait take turns, one call each, and so do the callers of each principal: a principal may have thousands of
 * connections. The limits on connections and batches bound the number of waiting calls.
 */
export class FairQueue<Call> {
  /** Waiting calls by principal and caller; principals and callers in the order of their next turns. */
  readonly #waiting = new Map<Owner, Map<QueuedCaller, Set<Call>>>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  add(caller: QueuedCaller, call: Call): void {
    const owner = ownerOf(caller.principal);
    const callers = this.#waiting.get(owner) ?? new Map<QueuedCaller, Set<Call>>();
    const calls = callers.get(caller) ?? new Set();
    this.#waiting.set(owner, callers.set(caller, calls.add(call)));
  }

  /** Removes a call that no longer waits. */
  delete(caller: QueuedCaller, call: Call): void {
    const owner = ownerOf(caller.principal);
    const callers = this.#waiting.get(owner);
    const calls = callers?.get(caller);
    calls?.delete(call);
    if (calls?.size === 0) callers?.delete(caller);
    if (callers?.size === 0) this.#waiting.delete(owner);
  }

  /** Removes and returns the call whose turn it is; undefined if none waits. */
  take(): Call | undefined {
    return takeTurn(this.#waiting, (callers) => takeTurn(callers, takeFirst<Call>));
  }
}

/** Takes a call from the first group, whose next turn then comes after those of the others. */
function takeTurn<Key, Group extends { readonly size: number }, Call>(
  groups: Map<Key, Group>,
  take: (group: Group) => Call | undefined,
): Call | undefined {
  for (const [key, group] of groups) {
    const taken = take(group);
    groups.delete(key);
    if (group.size > 0) groups.set(key, group);
    return taken;
  }
  return undefined;
}

function takeFirst<Call>(calls: Set<Call>): Call | undefined {
  const [first] = calls;
  if (first !== undefined) calls.delete(first);
  return first;
}
