import type { Subscription } from "../domain/subscription.ts";

/** A stored secret and its replacement: the same secret, encrypted with another key. */
export interface SecretChange extends Pick<Subscription, "id"> {
  readonly from: string;
  readonly to: string;
}

/** The stored, encrypted secrets of subscriptions. */
export interface SecretRows {
  /** In one transaction, sets each secret that still equals `from` to `to`, whatever the subscription's epoch. Returns how many, once they are durable. */
  replaceSecrets(changes: readonly SecretChange[]): Promise<number>;
}
