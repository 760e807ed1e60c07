import type { Ticket } from "../../domain/delivery-window.ts";
import { extensionsBytes } from "../../domain/event-rules.ts";
import { LazySet } from "../../lib/lazy-collections.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Delivery, Peer } from "./peer.ts";

/** Maximum number of deliveries of one connection that wait until the session is written. */
const outgoingMax = 1_000;

/** Maximum bytes of content and extensions of these deliveries; the last one may exceed it. The peer gets them all, whether it reads or not. */
const outgoingBytesMax = 256 * 1024;

export interface OutgoingParts {
  readonly peer: Pick<Peer, "deliver" | "release">;
  readonly slices: Pauses;
  readonly written: () => Promise<void>;
  readonly onSent: () => void;
  readonly onFailed: (error: unknown) => void;
}

interface Waiting {
  readonly delivery: Delivery;
  readonly bytes: number;
  isWritten: boolean;
}

/** Sends deliveries to a peer in order. Some wait until the session is written, and all later ones wait with them. */
export class Outgoing {
  readonly #peer: OutgoingParts["peer"];
  readonly #slices: Pauses;
  readonly #written: () => Promise<void>;
  readonly #onSent: () => void;
  readonly #onFailed: (error: unknown) => void;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  /** Tickets whose release waits until the session is written. */
  readonly #releasing = new LazySet<Ticket>();
  #isSending = false;
  #isClosed = false;

  /** `written` resolves when the session's current state is on disk. `onSent` is called after what waited was sent or has failed. */
  constructor({ peer, slices, written, onSent, onFailed }: OutgoingParts) {
    this.#peer = peer;
    this.#slices = slices;
    this.#written = written;
    this.#onSent = onSent;
    this.#onFailed = onFailed;
  }

  /** Whether another delivery may wait. */
  get hasRoom(): boolean {
    return this.#waiting.length < outgoingMax && this.#waitingBytes < outgoingBytesMax;
  }

  send(delivery: Delivery, { afterWrite }: { readonly afterWrite: boolean }): void {
    if (!afterWrite && this.#waiting.length === 0) {
      this.#deliver(delivery);
      return;
    }
    const { content, extensions } = delivery.event;
    const waiting = { delivery, bytes: content.byteLength + extensionsBytes(extensions), isWritten: !afterWrite };
    this.#waiting.push(waiting);
    this.#waitingBytes += waiting.bytes;
    void this.#sendWhenWritten();
  }

  /** Asks the peer to release a ticket once the session is written. Asks once, even if the peer repeats its answer meanwhile. */
  release(ticket: Ticket): void {
    if (this.#releasing.has(ticket)) return;
    this.#releasing.add(ticket);
    void this.#sendWhenWritten();
  }

  /** Drops the waiting deliveries that are gone, and returns them. The peer never gets them. */
  drop(isGone: (delivery: Delivery) => boolean): readonly Delivery[] {
    const gone = this.#waiting.filter(({ delivery }) => isGone(delivery));
    this.#waiting = this.#waiting.filter(({ delivery }) => !isGone(delivery));
    for (const { bytes } of gone) this.#waitingBytes -= bytes;
    return gone.map(({ delivery }) => delivery);
  }

  /** Drops the waiting deliveries. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
  }

  #deliver(delivery: Delivery): void {
    try {
      this.#peer.deliver(delivery);
    } catch (error) {
      this.#onFailed(error);
    }
  }

  /** Waits for one write at a time, however much waits for it: one write of the store may free the deliveries of thousands of sessions. */
  async #sendWhenWritten(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    await Promise.resolve(); // One write for all that the session sends in this turn.
    while (!this.#isClosed && (this.#waiting.length > 0 || this.#releasing.size > 0)) {
      const [waiting, releasing] = [[...this.#waiting], [...this.#releasing]];
      await this.#written();
      for (const one of waiting) one.isWritten = true;
      do {
        const pause = this.#slices.pause();
        if (pause !== undefined) await pause;
      } while (this.#sendNext(releasing));
      this.#onSent();
    }
    this.#isSending = false;
  }

  /** Sends the first of these releases, or else the first delivery if it need not wait any longer. Returns whether there was one. */
  #sendNext(releasing: Ticket[]): boolean {
    if (this.#isClosed) return false;
    const ticket = releasing.shift();
    if (ticket !== undefined) {
      this.#releasing.delete(ticket);
      this.#peer.release(ticket);
      return true;
    }
    const [first] = this.#waiting;
    if (first?.isWritten !== true) return false;
    this.#waiting.shift();
    this.#waitingBytes -= first.bytes;
    this.#deliver(first.delivery);
    return true;
  }
}
