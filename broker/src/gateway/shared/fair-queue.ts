import { tenantOf } from "../../domain/quota.ts";
import { type Caller, ownerOf } from "../../engine/access/caller.ts";

/** A caller on one connection, by one protocol. The queue compares callers by identity; the waiting calls of each form one queue. */
export type QueuedCaller = Pick<Caller, "principal">;

/** Either calls, or queues by tenant, principal or caller, in the order of their next turns. */
interface Queue<Call> {
  readonly calls: Set<Call>;
  readonly queues: Map<unknown, Queue<Call>>;
}

/**
 * Calls that wait. Tenants take turns, one call each. Within a tenant, its principals take turns, and within a principal, its callers: a tenant may have
 * thousands of principals, and a principal thousands of connections. A principal without a tenant counts as a tenant. The limits on connections and batches
 * bound the number of waiting calls of open connections. Whoever adds a call must remove it when its connection ends, or after a time.
 */
export class FairQueue<Call> {
  readonly #waiting: Queue<Call> = createQueue();

  get isEmpty(): boolean {
    return isEmpty(this.#waiting);
  }

  add(caller: QueuedCaller, call: Call): void {
    let queue = this.#waiting;
    for (const key of pathTo(caller)) {
      const inner = queue.queues.get(key) ?? createQueue();
      queue.queues.set(key, inner);
      queue = inner;
    }
    queue.calls.add(call);
  }

  /** Removes a call that no longer waits. */
  delete(caller: QueuedCaller, call: Call): void {
    remove(this.#waiting, pathTo(caller), call);
  }

  /** Removes and returns the call whose turn it is; undefined if none waits. */
  take(): Call | undefined {
    return takeFirst(this.#waiting);
  }
}

function createQueue<Call>(): Queue<Call> {
  return { calls: new Set(), queues: new Map() };
}

function isEmpty({ calls, queues }: Queue<unknown>): boolean {
  return calls.size === 0 && queues.size === 0;
}

/** The keys of the queues that hold a caller's calls, from the outermost. The slash tells a tenant from a principal of the same name. */
function pathTo(caller: QueuedCaller): readonly unknown[] {
  const owner = ownerOf(caller.principal);
  const tenant = tenantOf(owner);
  return [tenant === undefined ? owner : `${tenant}/`, owner, caller];
}

function remove<Call>(queue: Queue<Call>, [key, ...path]: readonly unknown[], call: Call): void {
  queue.calls.delete(call);
  const inner = queue.queues.get(key);
  if (inner === undefined) return;
  remove(inner, path, call);
  if (isEmpty(inner)) queue.queues.delete(key);
}

/** Takes a call from the first queue, whose next turn then comes after those of the others. */
function takeFirst<Call>({ calls, queues }: Queue<Call>): Call | undefined {
  for (const call of calls) {
    calls.delete(call);
    return call;
  }
  for (const [key, queue] of queues) {
    const taken = takeFirst(queue);
    queues.delete(key);
    if (!isEmpty(queue)) queues.set(key, queue);
    return taken;
  }
  return undefined;
}
