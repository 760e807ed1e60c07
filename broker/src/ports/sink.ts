import type { EventId } from "@stele/wire";
import type { Event } from "../domain/event.ts";
import type { Subscription, WebhookDelivery } from "../domain/subscription.ts";

/** The destination of a subscription's notifications. */
export type CallbackTarget = Pick<Subscription, "id"> & Omit<WebhookDelivery, "kind">;

/** Where an event comes from, for forms that say it. Time in milliseconds since the epoch; undefined where nobody knows it now. */
export interface NotifiedOrigin {
  readonly source: string;
  readonly time: number | undefined;
}

/** One event as its subscriber sees it. A repeat has the same eventId. */
export interface NotifiedEvent {
  readonly event: Event;
  readonly eventId: EventId;
  /** Present where the form of the subscription needs it. */
  readonly origin?: NotifiedOrigin;
}

/** One event for one subscription, or a batch of them, of which it is the first. */
export interface Notification extends NotifiedEvent {
  readonly subscription: CallbackTarget;
  /** Every event of a batch, in order; undefined for a subscription without batches. */
  readonly batch?: readonly NotifiedEvent[];
  /** W3C traceparent of the attempt, for the receiver; that of the event if left out. */
  readonly traceParent?: string | undefined;
}

/**
 * Result of an attempt. `gone`: the receiver never wants another event. `withheld`: nothing was sent, because `mayStart` refused. Reasons are for
 * people; they contain no secret.
 */
export type AttemptOutcome =
  | { readonly status: "accepted" }
  | { readonly status: "failed"; readonly reason: string; readonly retryAfterMs?: number }
  | { readonly status: "gone"; readonly reason: string }
  | { readonly status: "withheld" };

/** What a receiver answered, as far as it was read. */
export interface AttemptAnswer {
  /** Of HTTP. */
  readonly status: number;
  readonly body: Uint8Array;
}

/** How a test event was taken. */
export interface TestOutcome {
  readonly outcome: Exclude<AttemptOutcome, { status: "withheld" }>;
  /** Undefined without an answer. */
  readonly answer: AttemptAnswer | undefined;
}

/** The part of an AbortSignal that an attempt needs: lighter objects than an AbortSignal have it too. */
export interface AttemptSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export interface AttemptOptions {
  /**
   * Whether the notification may still be sent. An attempt may wait long for its turn, so the sink calls this in the same turn as it sends, before
   * each send. Always true if absent.
   */
  readonly mayStart?: (() => boolean) | undefined;
  /** Ends an attempt that still waits for its turn; the result is `withheld`. */
  readonly stopping?: AttemptSignal | undefined;
  /** Called with the answer, if there is one, before the attempt ends. It must not throw. */
  readonly onAnswer?: ((answer: AttemptAnswer) => void) | undefined;
}

/** A place among the attempts at one receiver. */
export interface AttemptSlot {
  /** Only the first call counts. */
  leave(): void;
}

/**
 * Delivers notifications. `attempt` never throws because of the receiver. It resolves within its own deadline, with `accepted` only if the receiver
 * accepted. It sends nothing after `signal` has aborted.
 */
export interface Sink {
  /** Checks an address, and asks its receiver for consent, before a subscription is created. @throws BrokerError 100501, 100506. */
  checkTarget(target: CallbackTarget): Promise<void>;
  attempt(notification: Notification, signal: AttemptSignal, options?: AttemptOptions): Promise<AttemptOutcome>;
  /**
   * Waits until few others attempt to reach the receiver, for callers that exist by the ten thousand: such a wait holds a fraction of what an attempt
   * holds that waits for its connection. Keep the slot until the attempt ends, and leave it before any other wait. Undefined where none is needed, or
   * `signal` aborts first.
   */
  enter(target: CallbackTarget, signal: AttemptSignal): AttemptSlot | Promise<AttemptSlot | undefined> | undefined;
  /** Sends an event that is none, once, as an event is sent: a receiver that takes it can take events. Never throws because of the receiver. */
  test(target: CallbackTarget, signal: AttemptSignal): Promise<TestOutcome>;
  /** Sends nothing more. Attempts in progress have `graceMs`; then they are aborted. */
  stop(graceMs: number): Promise<void>;
}
