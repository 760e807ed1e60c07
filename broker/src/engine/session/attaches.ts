import { BrokerError } from "@stele/wire";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Caller } from "../access/caller.ts";
import type { Attachment } from "../broker.ts";
import { ClaimSkipped } from "./stored/session-claims.ts";

interface Waiting extends Deferred<Attachment> {
  readonly caller: Pick<Caller, "signal">;
  readonly attach: () => Promise<Attachment>;
}

/** The attaches in progress. A broker that stops refuses new attaches, and closes the store only after the last one has ended. */
export class Attaches {
  readonly #locks: KeyedMutex<string>;
  /** The attaches that wait for the lock of their session's name. */
  readonly #waiting = new Map<string, readonly Waiting[]>();
  readonly #running = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(locks: KeyedMutex<string>) {
    this.#locks = locks;
  }

  /**
   * Runs an attach under the lock of its session's name. If the store does not answer, attaches may wait long, and a client may connect again and again. So
   * each call drops the waiting attaches whose connections have ended. An attach also does not begin if its connection ended while it waited: it would take
   * the session from a live connection.
   * @throws ClaimSkipped if the connection ended first; 200300 after {@link close}; what the attach throws.
   */
  run(name: string, caller: Waiting["caller"], attach: Waiting["attach"]): Promise<Attachment> {
    const waiting = { caller, attach, ...createDeferred<Attachment>() };
    const earlier = this.#waiting.get(name);
    const live: Waiting[] = [];
    for (const one of earlier ?? []) {
      if (one.caller.signal.aborted) one.reject(new ClaimSkipped());
      else live.push(one);
    }
    this.#waiting.set(name, [...live, waiting]);
    if (earlier === undefined) this.#schedule(name);
    return waiting.promise;
  }

  /** Refuses new attaches, and resolves when the last one has ended. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
  }

  #schedule(name: string): void {
    void this.#locks.run(name, () => this.#runNext(name));
  }

  /** Never rejects. */
  async #runNext(name: string): Promise<void> {
    const [next, ...others] = this.#waiting.get(name) ?? [];
    this.#waiting.delete(name);
    if (others.length > 0) {
      this.#waiting.set(name, others);
      this.#schedule(name);
    }
    if (next !== undefined) await this.#run(next);
  }

  async #run({ caller, attach, resolve, reject }: Waiting): Promise<void> {
    if (caller.signal.aborted) return reject(new ClaimSkipped());
    if (this.#isClosed) return reject(new BrokerError("busy", { details: "the broker is stopping" }));
    const running = attach();
    this.#running.add(running);
    try {
      resolve(await running);
    } catch (error) {
      reject(error);
    } finally {
      this.#running.delete(running);
    }
  }
}
