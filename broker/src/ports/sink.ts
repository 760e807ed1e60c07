import type { EventId } from "@stele/wire";
import type { Event } from "../domain/event.ts";
import type { Subscription, WebhookDelivery } from "../domain/subscription.ts";

/** The destination of a subscription's notifications. */
export type CallbackTarget = Pick<Subscription, "id"> & Omit<WebhookDelivery, "kind">;

/** Source and time of an event, for forms that contain them. The time is in milliseconds since the epoch, and undefined while it is unknown. */
export interface NotifiedOrigin {
  readonly source: string;
  readonly time: number | undefined;
}

/** One event as its subscriber sees it. A repeat has the same eventId. */
export interface NotifiedEvent {
  readonly event: Event;
  readonly eventId: EventId;
  /** Present if the form of the subscription contains source and time. */
  readonly origin?: NotifiedOrigin;
}

/** One event for one subscription, or the first event of a batch. */
export interface Notification extends NotifiedEvent {
  readonly subscription: CallbackTarget;
  /** Every event of a batch, in order; undefined for a subscription without batches. */
  readonly batch?: readonly NotifiedEvent[];
  /** W3C traceparent of the attempt, for the receiver; if left out, the event's own. */
  readonly traceParent?: string | undefined;
}

/**
 * Result of an attempt. `gone`: the receiver never wants another event. `withheld`: nothing was sent, because `mayStart` refused, or a signal aborted
 * while the attempt waited. Reasons are for people; they contain no secret.
 */
export type AttemptOutcome =
  | { readonly status: "accepted" }
  | { readonly status: "failed"; readonly reason: string; readonly retryAfterMs?: number }
  | { readonly status: "gone"; readonly reason: string }
  | { readonly status: "withheld" };

/** A receiver's answer, as far as it was read. */
export interface AttemptAnswer {
  /** HTTP status. */
  readonly status: number;
  readonly body: Uint8Array;
}

/** How a receiver answered a test event. */
export interface TestOutcome {
  readonly outcome: Exclude<AttemptOutcome, { status: "withheld" }>;
  /** The receiver's answer; undefined if there was none. */
  readonly answer: AttemptAnswer | undefined;
}

/** The part of an AbortSignal that an attempt needs, so that callers can pass a lighter object. */
export interface AttemptSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export interface AttemptOptions {
  /**
   * Whether the notification may still be sent. An attempt may wait long for a connection, so the sink calls this right before each send, in the same
   * turn of the event loop. If absent, it may always be sent.
   */
  readonly mayStart?: (() => boolean) | undefined;
  /** Ends an attempt that still waits for its turn; the result is `withheld`. */
  readonly stopping?: AttemptSignal | undefined;
  /** Called with the answer, if there is one, before the attempt ends. It must not throw. */
  readonly onAnswer?: ((answer: AttemptAnswer) => void) | undefined;
}

/** The right of one caller to attempt to reach a receiver. */
export interface AttemptSlot {
  /** Frees the slot. Further calls have no effect. */
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
   * Waits until few others attempt to reach the receiver. Tens of thousands of callers may wait: this wait takes a fraction of the memory of an attempt
   * that waits for its connection. Keep the slot until the attempt ends, and leave it before any other wait. Undefined if no slot is needed, or if
   * `signal` aborts first.
   */
  enter(target: CallbackTarget, signal: AttemptSignal): AttemptSlot | Promise<AttemptSlot | undefined> | undefined;
  /**
   * Sends a made-up event once, as real events are sent: a receiver that accepts it can accept real ones. Calls `mayStart` as `attempt` does. Never throws
   * because of the receiver.
   */
  test(target: CallbackTarget, signal: AttemptSignal, mayStart?: () => boolean): Promise<TestOutcome>;
  /** Sends nothing more. Attempts in progress have `graceMs`; then they are aborted. */
  stop(graceMs: number): Promise<void>;
}
