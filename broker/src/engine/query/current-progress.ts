import type { Subscription } from "../../domain/subscription.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";

/** A subscription with the progress of its worker, which is ahead of the store. */
export interface Current {
  readonly subscription: Subscription;
  /** Whether every matching event is acknowledged; false if this node does not deliver the subscription. */
  readonly isIdle: boolean;
}

interface ProgressSources {
  readonly workers: DeliveryWorkers;
  readonly progressWriter: ProgressWriter;
}

/** A stored subscription with the newest progress that this node knows. */
export function toCurrent(stored: Subscription, { workers, progressWriter }: ProgressSources): Current {
  const worker = workers.find(stored.id);
  const progress = worker?.progress ?? progressWriter.find(stored.id);
  if (progress?.epoch !== stored.epoch) return { subscription: stored, isIdle: false };
  return { subscription: { ...stored, ...progress }, isIdle: worker?.isIdle === true };
}
