import type { EventId } from "@stele/wire";
import type { Event } from "../domain/event.ts";
import type { Subscription } from "../domain/subscription.ts";

/** One event on its way to one subscription. A repeat carries the same eventId. */
export interface Notification {
  readonly subscription: Pick<Subscription, "id" | "interfaceType" | "url" | "secret">;
  readonly event: Event;
  readonly eventId: EventId;
}

/** How an attempt ended. `gone`: the receiver wants no more, ever. Reasons are for people; they hold no secret. */
export type AttemptOutcome =
  | { readonly status: "accepted" }
  | { readonly status: "failed"; readonly reason: string; readonly retryAfterMs?: number }
  | { readonly status: "gone"; readonly reason: string };

/**
 * Where notifications go. `attempt` never throws for what the receiver does; it answers within its own deadline, and
 * `accepted` only when the receiver has said so.
 */
export interface Sink {
  /** Checks an address before a subscription is made. @throws BrokerError 100501. */
  checkUrl(url: string): Promise<void>;
  attempt(notification: Notification, signal: AbortSignal): Promise<AttemptOutcome>;
  stop(): Promise<void>;
}
