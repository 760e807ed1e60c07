import { BrokerError } from "@stele/wire";
import { findReceiver } from "../../domain/receiver.ts";
import type { Store } from "../../ports/store.ts";

export interface ReceiverQuotaParts {
  readonly store: Pick<Store, "countSubscriptionsTo">;
  readonly limits: { readonly subscriptionsPerReceiverMax: number };
}

/** Bounds the subscriptions to one receiver, so that one event is not multiplied without end. */
export class ReceiverQuota {
  readonly #parts: ReceiverQuotaParts;
  /** Number of calls in progress that add a subscription, by receiver. Concurrent calls thus count each other. */
  readonly #underWay = new Map<string, number>();

  constructor(parts: ReceiverQuotaParts) {
    this.#parts = parts;
  }

  /** Runs `task`, which adds a subscription to the receiver of a url. @throws BrokerError 200301. */
  async run<T>(url: string, task: () => Promise<T>): Promise<T> {
    const receiver = findReceiver(url);
    if (receiver === undefined) return task();
    const others = this.#underWay.get(receiver) ?? 0;
    this.#underWay.set(receiver, others + 1);
    try {
      await this.#check(receiver, others);
      return await task();
    } finally {
      const left = (this.#underWay.get(receiver) ?? 1) - 1;
      if (left === 0) this.#underWay.delete(receiver);
      else this.#underWay.set(receiver, left);
    }
  }

  async #check(receiver: string, others: number): Promise<void> {
    const { store, limits } = this.#parts;
    if ((await store.countSubscriptionsTo(receiver)) + others < limits.subscriptionsPerReceiverMax) return;
    throw new BrokerError("overQuota", {
      details: `${limits.subscriptionsPerReceiverMax} subscriptions to one receiver are the limit`,
      hints: ["The setting STELE_CALLBACK_SUBSCRIPTIONS_PER_RECEIVER_MAX raises it."],
    });
  }
}
