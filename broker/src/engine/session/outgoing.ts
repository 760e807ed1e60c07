import type { Ticket } from "../../domain/delivery-window.ts";
import { extensionsBytes } from "../../domain/event-rules.ts";
import { LazySet } from "../../lib/lazy-collections.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Delivery, Peer } from "./peer.ts";

/** Maximum number of deliveries of one connection that wait until the session is written. */
const outgoingMax = 1_000;

/** Maximum bytes of content and extensions of these deliveries; the last one may exceed it. The peer gets them all at once, whether it reads or not. */
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
  #isSending = false;
  /** Tickets whose release waits until the session is written. */
  readonly #releasing = new LazySet<Ticket>();
  #isClosed = false;

  /** `written` resolves when the session's current state is on disk. `onSent` is called after waiting deliveries were sent or have failed. */
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
    if (!afterWrite) return;
    void this.#sendWhenWritten(waiting);
  }

  /** Asks the peer to release a ticket once the session is written. Asks once, even if the peer repeats its answer meanwhile. */
  release(ticket: Ticket): void {
    if (this.#releasing.has(ticket)) return;
    this.#releasing.add(ticket);
    void this.#releaseWhenWritten(ticket);
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

  async #sendWhenWritten(waiting: Waiting): Promise<void> {
    await this.#written();
    waiting.isWritten = true;
    if (!this.#isClosed && !this.#isSending) await this.#sendWritten();
  }

  async #releaseWhenWritten(ticket: Ticket): Promise<void> {
    await this.#written();
    this.#releasing.delete(ticket);
    if (!this.#isClosed) this.#peer.release(ticket);
  }

  /** In slices, since one write of the store may free the deliveries of hundreds of sessions. */
  async #sendWritten(): Promise<void> {
    this.#isSending = true;
    for (;;) {
      const pause = this.#slices.pause();
      if (pause !== undefined) await pause;
      const [first] = this.#waiting;
      if (first?.isWritten !== true) break;
      this.#waiting.shift();
      this.#waitingBytes -= first.bytes;
      this.#deliver(first.delivery);
    }
    this.#isSending = false;
    this.#onSent();
  }
}
