import { BrokerError } from "@stele/wire";
import { findReceiver } from "../../domain/receiver.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import { KeptCounts } from "./kept-counts.ts";

export interface SubscriptionQuotaOptions {
  readonly store: Pick<Store, "countSubscriptions" | "countSubscriptionsTo">;
  readonly clock: Pick<Clock, "monotonic">;
  readonly limits: { readonly subscriptionsMax: number; readonly subscriptionsPerReceiverMax: number };
}

/** Performs a change; returns false if nothing changed. */
type Task = () => Promise<boolean>;

interface Limit {
  readonly counts: KeptCounts;
  readonly key: string;
  readonly max: number;
  readonly refuse: (max: number) => BrokerError;
}

const everything = "";

/** Limits the subscriptions of the broker and those to one receiver, so that one event does not cause callbacks without limit. */
export class SubscriptionQuota {
  readonly #limits: SubscriptionQuotaOptions["limits"];
  readonly #total: KeptCounts;
  readonly #byReceiver: KeptCounts;

  constructor({ store, clock, limits }: SubscriptionQuotaOptions) {
    this.#limits = limits;
    this.#total = new KeptCounts(() => store.countSubscriptions(), clock);
    this.#byReceiver = new KeptCounts((receiver) => store.countSubscriptionsTo(receiver), clock);
  }

  /** Runs `task`, which makes a subscription with a url. @throws BrokerError 200300, 200301. */
  make(url: string, task: Task): Promise<boolean> {
    const limit = { counts: this.#total, key: everything, max: this.#limits.subscriptionsMax, refuse: tooMany };
    return runWithin(limit, () => this.#addTo(url, task));
  }

  /** Runs `task`, which changes or keeps the url of a subscription. @throws BrokerError 200301 if the new receiver has no room. */
  async move(from: string, to: string, task: Task): Promise<boolean> {
    if (findReceiver(from) === findReceiver(to)) return task();
    const isMoved = await this.#addTo(to, task);
    if (isMoved) this.#removeFrom(from);
    return isMoved;
  }

  /** Counts a subscription that was removed. */
  removed(url: string): void {
    this.#total.removed(everything);
    this.#removeFrom(url);
  }

  #addTo(url: string, task: Task): Promise<boolean> {
    const key = findReceiver(url);
    if (key === undefined) return task();
    const max = this.#limits.subscriptionsPerReceiverMax;
    return runWithin({ counts: this.#byReceiver, key, max, refuse: tooManyToOne }, task);
  }

  #removeFrom(url: string): void {
    const receiver = findReceiver(url);
    if (receiver !== undefined) this.#byReceiver.removed(receiver);
  }
}

async function runWithin({ counts, key, max, refuse }: Limit, task: Task): Promise<boolean> {
  const addition = await counts.add(key, max);
  if (addition === undefined) throw refuse(max);
  let isMade = false;
  try {
    isMade = await task();
    return isMade;
  } finally {
    addition.settle(isMade);
  }
}

function tooMany(max: number): BrokerError {
  return new BrokerError("busy", { details: `${max} subscriptions are the limit` });
}

function tooManyToOne(max: number): BrokerError {
  return new BrokerError("overQuota", {
    details: `${max} subscriptions to one receiver are the limit`,
    hints: ["The setting STELE_CALLBACK_SUBSCRIPTIONS_PER_RECEIVER_MAX raises it."],
  });
}
