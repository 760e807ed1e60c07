import type { EventId } from "@stele/wire";
import type { Event } from "../domain/event.ts";
import type { Subscription, WebhookDelivery } from "../domain/subscription.ts";

/** Where the notifications of a subscription go. */
export type CallbackTarget = Pick<Subscription, "id"> & Omit<WebhookDelivery, "kind">;

/** One event on its way to one subscription. A repeat carries the same eventId. */
export interface Notification {
  readonly subscription: CallbackTarget;
  readonly event: Event;
  readonly eventId: EventId;
}

/**
 * How an attempt ended. `gone`: the receiver wants no more, ever. `withheld`: nothing was sent, for `mayStart` has denied it. Reasons are
 * for people; they hold no secret.
 */
export type AttemptOutcome =
  | { readonly status: "accepted" }
  | { readonly status: "failed"; readonly reason: string; readonly retryAfterMs?: number }
  | { readonly status: "gone"; readonly reason: string }
  | { readonly status: "withheld" };

export interface AttemptOptions {
  /**
   * Whether this may be sent at all, by whoever is asked now. An attempt may wait long for its turn: it is asked in the same turn in which
   * the notification is handed over, and each time when that is done more than once. Always so when left out.
   */
  readonly mayStart?: (() => boolean) | undefined;
  /** Ends an attempt that still waits for its turn: it is withheld. */
  readonly stopping?: AbortSignal | undefined;
}

/**
 * Where notifications go. `attempt` never throws for what the receiver does; it answers within its own deadline, and
 * `accepted` only when the receiver has said so. Nothing is sent any more once `signal` has aborted.
 */
export interface Sink {
  /** Checks an address, and asks its receiver, before a subscription is made. @throws BrokerError 100501, 100506. */
  checkTarget(target: CallbackTarget): Promise<void>;
  attempt(notification: Notification, signal: AbortSignal, options?: AttemptOptions): Promise<AttemptOutcome>;
  stop(): Promise<void>;
}
