import type { DeliveryWindow } from "../../domain/delivery-window.ts";
import type { Event } from "../../domain/event.ts";
import { Cancellation } from "../../lib/cancellation.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Feed } from "../dispatch/feed.ts";
import { type Connection, hasRoom, inFlight, type Reading } from "./connection.ts";
import type { Rejections } from "./rejections.ts";
import type { Repeater } from "./repeater.ts";
import type { Retained, RetainedEvents } from "./retained/retained.ts";
import { stuck, type Waiting } from "./waiting.ts";

export interface ReadingParts {
  readonly window: DeliveryWindow;
  readonly waiting: Waiting;
  readonly retained: RetainedEvents;
  readonly rejections: Rejections;
  readonly repeater: Repeater;
  readonly slices: TimeSlices;
}

export interface Receiver {
  readonly give: (event: Event) => void;
  readonly giveRetained: (retained: Retained) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Three loops that fill a connection while it has room: with events of the feed, retained events, and rejected events. A process may have tens of
 * thousands of connections, and most need only the first loop, so the other two run only while they have work.
 */
export class ReadingLoops implements Reading {
  readonly feed: Feed;
  readonly #connection: Connection;
  readonly #parts: ReadingParts;
  readonly #receiver: Receiver;
  readonly #ending = new Cancellation();
  readonly #live: Promise<void>;
  #outside: Promise<void> | undefined;
  #rejected: Promise<void> | undefined;
  #hasFailed = false;
  /** Whether events of an earlier connection from outside the stream are still to be repeated. */
  #isRepeating: boolean;

  constructor(connection: Connection, feed: Feed, { parts, receiver }: { parts: ReadingParts; receiver: Receiver }) {
    this.#connection = connection;
    this.feed = feed;
    this.#parts = parts;
    this.#receiver = receiver;
    this.#isRepeating = inFlight(parts.window, "outside").length > 0;
    this.#live = this.#run(this.#giveLive());
    if (this.#isRepeating) this.#outside = this.#giveAllOutside(this.#repeatOutside());
    this.wake();
  }

  wake(): void {
    if (this.#hasFailed || this.#ending.aborted) return;
    const { retained, rejections } = this.#parts;
    if (!retained.isEmpty) this.#outside ??= this.#giveAllOutside(this.#giveRetained());
    if (rejections.hasWork) this.#rejected ??= this.#giveAllRejected();
  }

  async end(): Promise<void> {
    this.#ending.abort();
    this.#parts.waiting.wake();
    // Ten thousand connections of one principal may end in one turn, and a feed may have a thousand filters to remove.
    const slice = this.#parts.slices.pause();
    if (slice !== undefined) await slice;
    this.feed.close();
    await Promise.all([this.#live, this.#outside, this.#rejected]);
  }

  async #giveAllOutside(loop: Promise<void>): Promise<void> {
    await this.#run(loop);
    this.#outside = undefined;
    this.wake();
  }

  async #giveAllRejected(): Promise<void> {
    const { rejections, repeater } = this.#parts;
    const where = { connection: this.#connection, signal: this.#ending };
    await this.#run(rejections.run(where.signal, (entry) => repeater.give(entry, where)));
    this.#rejected = undefined;
    this.wake();
  }

  async #run(loop: Promise<void>): Promise<void> {
    try {
      await loop;
    } catch (error) {
      this.#hasFailed = true;
      this.#receiver.failed(error);
    }
  }

  async #giveLive(): Promise<void> {
    const { waiting, retained, rejections, repeater, slices } = this.#parts;
    const { feed } = this;
    const signal = this.#ending;
    // Retained, repeated and rejected events are older, so they come first.
    const isHeldBack = (): boolean => !retained.isEmpty || this.#isRepeating || rejections.isHoldingBack;
    while (!signal.aborted) {
      // Do not yield between events in memory: all deliveries to a client in one turn share one write.
      if (feed.peek() === undefined && !feed.isCaughtUp)
        await waiting.untilDone({ what: stuck.live, signal }, () => feed.catchUp(signal));
      if (feed.isCaughtUp && !signal.aborted) repeater.giveUpPassed(this.#connection, feed.position);
      // Most connections wait here, so use one promise only.
      if (feed.isCaughtUp) await feed.woken(signal);
      while (!signal.aborted && (isHeldBack() || !hasRoom(this.#connection))) await waiting.woken();
      const event = feed.peek();
      if (event === undefined || signal.aborted) continue;
      feed.advance();
      this.#receiver.give(event);
      const slice = slices.pause();
      if (slice !== undefined) await slice;
    }
  }

  /** Repeats the retained events and the events of shares that an earlier connection had. */
  async #repeatOutside(): Promise<void> {
    const { window, repeater } = this.#parts;
    const connection = this.#connection;
    for (const entry of inFlight(window, "outside")) {
      if (!connection.held.has(entry.ticket)) await repeater.give(entry, { connection, signal: this.#ending });
    }
    this.#isRepeating = false;
    this.#parts.waiting.wake();
  }

  /** Delivers retained events until none is left. */
  async #giveRetained(): Promise<void> {
    const { waiting, retained, slices } = this.#parts;
    const connection = this.#connection;
    const signal = this.#ending;
    while (!signal.aborted && !retained.isEmpty) {
      while (!signal.aborted && !hasRoom(connection)) await waiting.woken();
      const next = await waiting.untilDone({ what: stuck.retained, signal }, () => retained.next(signal));
      while (!signal.aborted && !hasRoom(connection)) await waiting.woken();
      if (signal.aborted) break;
      if (next !== undefined) this.#receiver.giveRetained(next);
      if (retained.isEmpty) waiting.wake();
      await slices.pause();
    }
  }
}
