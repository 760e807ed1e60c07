import type { Subscription } from "../domain/subscription.ts";

/** A stored secret and its replacement: the same secret, encrypted with another key. */
export interface SecretChange extends Pick<Subscription, "id"> {
  readonly from: string;
  readonly to: string;
}

/** The stored, encrypted secrets of subscriptions. */
export interface SecretRows {
  /** Replaces secrets that have not changed, whatever their epochs, in one transaction. Returns how many, after they are durable. */
  replaceSecrets(changes: readonly SecretChange[]): Promise<number>;
}
