import type { DeliveryWindow, InFlight, Ticket } from "../../domain/delivery-window.ts";
import { backoffDelayMs } from "../../lib/backoff.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import { pause } from "../../lib/pause.ts";
import type { Connection } from "./connection.ts";
import type { Waiting, WaitingParts } from "./waiting.ts";
import { LazyMap } from "../../lib/lazy-collections.ts";

export interface RejectionsParts extends Pick<WaitingParts, "clock" | "limits" | "logger"> {
  readonly window: DeliveryWindow;
  readonly waiting: Waiting;
  readonly isSuspended: boolean;
  /** Identifier of the session. */
  readonly id: string;
}

/** Shortest wait before a rejected event is delivered again, in milliseconds. It doubles with each rejection, because a consumer may reject at full speed. */
const delayMsMin = 100;

/** Longest wait before a rejected event is delivered again, in milliseconds. */
const delayMsMax = 10_000;

/**
 * The events that a peer rejected. The peer gets them again in order, each after a wait, and gets newer events only afterwards. When it has rejected one event
 * `rejectionsMax` times, the session is suspended: it gets no event until it is resumed.
 */
export class Rejections {
  readonly #parts: RejectionsParts;
  /** When each event is due again, by the monotonic clock. */
  readonly #dueAt = new LazyMap<Ticket, number>();
  #isSuspended: boolean;
  #isRepeating = false;

  constructor(parts: RejectionsParts) {
    this.#parts = parts;
    this.#isSuspended = parts.isSuspended;
  }

  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  /** Whether newer events must wait. */
  get isHoldingBack(): boolean {
    return this.#isSuspended || this.#isRepeating || this.#next() !== undefined;
  }

  /** Whether a rejected event must be delivered again. */
  get hasWork(): boolean {
    return !this.#isSuspended && this.#next() !== undefined;
  }

  /** Records that the peer rejects an event. Returns whether the peer has the event. */
  add({ held, peer }: Connection, ticket: Ticket): boolean {
    if (!held.delete(ticket)) return false;
    if (this.#suspendsAfter(ticket)) peer.suspended?.(ticket);
    return true;
  }

  #suspendsAfter(ticket: Ticket): boolean {
    const { id, window, clock, limits, logger } = this.#parts;
    const count = window.reject(ticket);
    if (count === undefined) return false;
    this.#dueAt.set(ticket, clock.monotonic() + backoffDelayMs(count, { delayMsMin, delayMsMax, fraction: 0 }));
    if (this.#isSuspended || count < limits.rejectionsMax) return false;
    this.#isSuspended = true;
    const remedy = "find out why the client rejects the event; deliveries resume when the client subscribes again";
    logger.warn("subscription suspended", {
      sessionId: id,
      topic: window.find(ticket)?.topic,
      rejections: count,
      remedy,
    });
    return true;
  }

  /** Forgets when rejected events are due, because the next connection gets all events in flight anyway, in order. */
  clear(): void {
    this.#dueAt.clear();
  }

  /** Ends a suspension, and resets the number of rejections of every event. */
  resume(): void {
    if (!this.#isSuspended) return;
    this.#isSuspended = false;
    this.#parts.window.forgetRejections();
  }

  /** Repeats each event when it is due, until none is left or `signal` aborts. `repeat` returns false if it did nothing because of the abort. */
  async run(signal: CancelSignal, repeat: (entry: InFlight) => Promise<boolean>): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      const entry = this.#isSuspended ? undefined : this.#next();
      if (entry === undefined) return;
      const waitMs = (this.#dueAt.get(entry.ticket) ?? 0) - clock.monotonic();
      if (waitMs > 0) await pause(clock, waitMs, signal);
      else await this.#repeat(entry, repeat);
    }
  }

  /** The peer may reject the event again before `repeat` returns. */
  async #repeat(entry: InFlight, repeat: (entry: InFlight) => Promise<boolean>): Promise<void> {
    const { clock, waiting } = this.#parts;
    this.#dueAt.delete(entry.ticket);
    this.#isRepeating = true;
    const isGiven = await repeat(entry);
    this.#isRepeating = false;
    if (!isGiven) this.#dueAt.set(entry.ticket, clock.monotonic());
    waiting.wake();
  }

  /** The first rejected event in stream order. Forgets events that are no longer in flight. */
  #next(): InFlight | undefined {
    if (this.#dueAt.size === 0) return undefined;
    const { window } = this.#parts;
    for (const ticket of this.#dueAt.keys()) if (window.find(ticket) === undefined) this.#dueAt.delete(ticket);
    for (const entry of window.entries) if (this.#dueAt.has(entry.ticket)) return entry;
    return undefined;
  }
}
