import type { DeliveryWindow, InFlight, Ticket } from "../../domain/delivery-window.ts";
import { backoffDelayMs } from "../../lib/backoff.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import { pause } from "../../lib/pause.ts";
import { type Connection, heldThrough } from "./connection.ts";
import type { Waiting, WaitingParts } from "./waiting.ts";
import { LazyMap } from "../../lib/lazy-collections.ts";

export interface RejectionsParts extends Pick<WaitingParts, "clock" | "limits" | "logger"> {
  readonly window: DeliveryWindow;
  readonly waiting: Waiting;
  readonly isSuspended: boolean;
  /** Of the session. */
  readonly id: string;
}

/** Wait before a rejected event is given again, in milliseconds; it doubles with each further rejection. A consumer may reject at full speed. */
const delayMsMin = 100;

/** Longest such wait. */
const delayMsMax = 10_000;

/**
 * The events that a peer rejected. It gets them again in their order, each after a wait, and nothing newer before. When it has rejected one event
 * `rejectionsMax` times, the session is suspended: it is given nothing until it is resumed.
 */
export class Rejections {
  readonly #parts: RejectionsParts;
  /** When each is given again, by the monotonic clock. */
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

  /** Whether nothing newer may be given. */
  get isHoldingBack(): boolean {
    return this.#isSuspended || this.#isRepeating || this.#next() !== undefined;
  }

  /** Whether an event is to be given again. */
  get hasWork(): boolean {
    return !this.#isSuspended && this.#next() !== undefined;
  }

  /** The peer rejects what it has: an event, or all that it was given up to it. Answers whether it has that one. */
  add(
    connection: Connection,
    { ticket, reach }: { readonly ticket: Ticket; readonly reach: "one" | "through" },
  ): boolean {
    if (!connection.held.has(ticket)) return false;
    for (const one of reach === "one" ? [ticket] : heldThrough(connection, ticket)) {
      connection.held.delete(one);
      if (this.#suspendsAfter(one)) connection.peer.suspended?.(one);
    }
    return true;
  }

  #suspendsAfter(ticket: Ticket): boolean {
    const { id, window, clock, limits, logger } = this.#parts;
    const count = window.reject(ticket);
    if (count === undefined) return false;
    this.#dueAt.set(ticket, clock.monotonic() + backoffDelayMs(count, { delayMsMin, delayMsMax, fraction: 0 }));
    if (this.#isSuspended || count < limits.rejectionsMax) return false;
    this.#isSuspended = true;
    const remedy = "find out why its client rejects the event; the client subscribes again to resume";
    logger.warn("subscription suspended", {
      sessionId: id,
      topic: window.find(ticket)?.topic,
      rejections: count,
      remedy,
    });
    return true;
  }

  /** A later connection gets what is in flight anyway, in its order. */
  clear(): void {
    this.#dueAt.clear();
  }

  /** Ends a suspension: every event has all of its attempts again. */
  resume(): void {
    if (!this.#isSuspended) return;
    this.#isSuspended = false;
    this.#parts.window.forgetRejections();
  }

  /** Gives each again when it is due, until there is none, or `signal` aborts. `repeat` answers false if it did not because the signal aborted. */
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

  /** The peer may reject the event again before the call returns. */
  async #repeat(entry: InFlight, repeat: (entry: InFlight) => Promise<boolean>): Promise<void> {
    const { clock, waiting } = this.#parts;
    this.#dueAt.delete(entry.ticket);
    this.#isRepeating = true;
    const isGiven = await repeat(entry);
    this.#isRepeating = false;
    if (!isGiven) this.#dueAt.set(entry.ticket, clock.monotonic());
    waiting.wake();
  }

  /** The first in the order of the stream. Forgets those that are in flight no more. */
  #next(): InFlight | undefined {
    if (this.#dueAt.size === 0) return undefined;
    const { window } = this.#parts;
    for (const ticket of this.#dueAt.keys()) if (window.find(ticket) === undefined) this.#dueAt.delete(ticket);
    for (const entry of window.entries) if (this.#dueAt.has(entry.ticket)) return entry;
    return undefined;
  }
}
