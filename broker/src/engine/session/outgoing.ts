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
  readonly written: () => Promise<void> | undefined;
  readonly onSent: () => void;
  readonly onFailed: (error: unknown) => void;
}

interface Waiting {
  /** The delivery, or the ticket to release. */
  readonly sent: Delivery | Ticket;
  readonly bytes: number;
  /** Resolves when the session's state at that time is on disk; undefined if it need not be. */
  readonly written: Promise<void> | undefined;
}

/** Sends deliveries and releases to a peer in order. Some wait until the session is written, and all later ones wait with them. */
export class Outgoing {
  readonly #peer: OutgoingParts["peer"];
  readonly #slices: Pauses;
  readonly #written: OutgoingParts["written"];
  readonly #onSent: () => void;
  readonly #onFailed: (error: unknown) => void;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  /** Tickets whose release waits until the session is written. */
  readonly #releasing = new LazySet<Ticket>();
  #isSending = false;
  #isClosed = false;

  /**
   * `written` resolves when the session's current state is on disk. While one write of the store serves several calls, return the same promise to all of them.
   * `onSent` is called after everything that waited for a write was sent or has failed.
   */
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
      this.#give(delivery);
      return;
    }
    const { content, extensions } = delivery.event;
    const bytes = content.byteLength + extensionsBytes(extensions);
    this.#waitingBytes += bytes;
    this.#add({ sent: delivery, bytes, written: afterWrite ? this.#written() : undefined });
  }

  /** Asks the peer to release a ticket once the session is written. Asks once, even if the peer repeats its answer meanwhile. */
  release(ticket: Ticket): void {
    if (this.#releasing.has(ticket)) return;
    this.#releasing.add(ticket);
    this.#add({ sent: ticket, bytes: 0, written: this.#written() });
  }

  /** Drops the waiting deliveries that are gone, and returns them. The peer never gets them. */
  drop(isGone: (delivery: Delivery) => boolean): readonly Delivery[] {
    const gone = this.#waiting.flatMap(({ sent }) => (typeof sent !== "number" && isGone(sent) ? [sent] : []));
    const dropped = new Set<Waiting["sent"]>(gone);
    for (const { sent, bytes } of this.#waiting) if (dropped.has(sent)) this.#waitingBytes -= bytes;
    this.#waiting = this.#waiting.filter(({ sent }) => !dropped.has(sent));
    return gone;
  }

  /** Drops everything that waits. */
  close(): void {
    this.#isClosed = true;
    this.#waiting = [];
  }

  #add(waiting: Waiting): void {
    if (this.#isClosed) return;
    this.#waiting.push(waiting);
    if (!this.#isSending) void this.#sendWaiting();
  }

  /** Sends in slices, since one write of the store may free deliveries of thousands of sessions. */
  async #sendWaiting(): Promise<void> {
    this.#isSending = true;
    let [first] = this.#waiting;
    while (first !== undefined) {
      const { written } = first;
      await written;
      for (; first !== undefined && first.written === written; [first] = this.#waiting) {
        const pause = this.#slices.pause();
        if (pause !== undefined) await pause;
        if (first === this.#waiting[0]) this.#sendFirst(first); // else it was dropped meanwhile
      }
      this.#onSent();
    }
    this.#isSending = false;
  }

  #sendFirst({ sent, bytes }: Waiting): void {
    this.#waiting.shift();
    this.#waitingBytes -= bytes;
    if (typeof sent === "number") this.#releasing.delete(sent);
    this.#give(sent);
  }

  #give(sent: Delivery | Ticket): void {
    try {
      if (typeof sent === "number") this.#peer.release(sent);
      else this.#peer.deliver(sent);
    } catch (error) {
      this.#onFailed(error);
    }
  }
}
