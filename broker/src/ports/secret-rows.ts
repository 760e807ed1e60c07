import type { Subscription } from "../domain/subscription.ts";

/** A secret as a store keeps it, and what takes its place: the same one, sealed with another key. */
export interface SecretChange extends Pick<Subscription, "id"> {
  readonly from: string;
  readonly to: string;
}

/** The secrets of subscriptions as a store keeps them, for whoever seals them. */
export interface SecretRows {
  /** Replaces those that are still as given, whatever their epochs; all in one transaction, on disk when it answers how many. */
  replaceSecrets(changes: readonly SecretChange[]): Promise<number>;
}
