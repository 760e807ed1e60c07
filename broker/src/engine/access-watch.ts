import type { TimeSlices } from "../lib/time-slices.ts";
import type { SubscriptionId } from "../domain/subscription.ts";
import type { Access } from "./access/access.ts";
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

/** Ends what goes on for somebody whose rights have ended: connections at once, callbacks one after the other. */
export class AccessWatch {
  readonly #options: AccessWatchOptions;
  #isRunning = false;
  #isDue = false;

  constructor(options: AccessWatchOptions) {
    this.#options = options;
  }

  check(): void {
    this.#options.sessions.checkRights();
    this.#isDue = true;
    if (!this.#isRunning) void this.#run();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#isDue) {
      this.#isDue = false;
      await this.#suspendAll();
    }
    this.#isRunning = false;
  }

  /** Subscribing again with a valid key continues at the cursor. */
  async #suspendAll(): Promise<void> {
    const { access, workers, suspend, slices } = this.#options;
    for (const { subscription, worker } of workers.all()) {
      const pause = slices.pause();
      if (pause !== undefined) await pause;
      if (!access.mayDeliver(subscription)) await suspend(subscription.id, worker);
    }
  }
}
