import type { TimeSlices } from "../lib/time-slices.ts";
import type { SubscriptionId } from "../domain/subscription.ts";
import type { Access } from "./access/access.ts";
import type { ChangedOwners } from "./access/caller.ts";
import type { DeliveryWorker } from "./deliver/delivery-worker.ts";
import type { DeliveryWorkers } from "./deliver/delivery-workers.ts";
import type { Sessions } from "./session/sessions.ts";

export interface AccessWatchOptions {
  readonly access: Access;
  readonly sessions: Pick<Sessions, "checkRights">;
  readonly workers: DeliveryWorkers;
  readonly suspend: (id: SubscriptionId, worker: DeliveryWorker) => Promise<void>;
  readonly slices: TimeSlices;
}

/** When a principal's rights end, ends its connections at once and suspends its callback subscriptions one after another. */
export class AccessWatch {
  readonly #options: AccessWatchOptions;
  /** Owners whose callback subscriptions must be checked. */
  #due = new Set<string>();
  #isRunning = false;

  constructor(options: AccessWatchOptions) {
    this.#options = options;
  }

  /** Call it several times a second, even if `changed` is empty: some rights end at an expiry time. */
  check(changed: ChangedOwners): void {
    this.#options.sessions.checkRights(changed);
    const { workers } = this.#options;
    // `all` means that the keys of a token issuer have changed: callbacks need no token, so no owner needs a check.
    if (changed !== "all") for (const owner of changed) this.#due.add(owner);
    for (const owner of workers.takeNewOwners()) this.#due.add(owner);
    if (!this.#isRunning && this.#due.size > 0) void this.#run();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    const due = this.#due;
    this.#due = new Set();
    for (const owner of due) {
      await this.#suspendOf(owner);
      // After a start, every owner is new: there may be 100,000.
      const pause = this.#options.slices.pause();
      if (pause !== undefined) await pause;
    }
    this.#isRunning = false;
  }

  /** Suspends an owner's subscriptions if its rights have ended. When a client subscribes again with a valid key, delivery continues at the cursor. */
  async #suspendOf(owner: string): Promise<void> {
    const { access, workers, suspend, slices } = this.#options;
    for (const { subscription, worker } of workers.ofOwner(owner)) {
      if (access.mayDeliver(subscription)) return; // The right is the same for all subscriptions of one owner.
      this.#due.add(owner); // check the owner again, until it has no worker left
      const pause = slices.pause();
      if (pause !== undefined) await pause;
      await suspend(subscription.id, worker);
    }
  }
}
