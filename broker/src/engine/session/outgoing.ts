import type { Ticket } from "../../domain/delivery-window.ts";
import { LazySet } from "../../lib/lazy-collections.ts";
import type { Delivery, Peer } from "./peer.ts";

export interface OutgoingParts {
  readonly peer: Pick<Peer, "deliver" | "release">;
  readonly written: () => Promise<void>;
  readonly onSent: () => void;
  readonly onFailed: (error: unknown) => void;
}

interface Waiting {
  readonly delivery: Delivery;
  isWritten: boolean;
}

/** Sends deliveries to a peer in order. Some wait until the session is written, and all later ones wait with them. */
export class Outgoing {
  readonly #peer: OutgoingParts["peer"];
  readonly #written: () => Promise<void>;
  readonly #onSent: () => void;
  readonly #onFailed: (error: unknown) => void;
  #waiting: Waiting[] = [];
  /** Tickets whose release waits until the session is written. */
  readonly #releasing = new LazySet<Ticket>();
  #isClosed = false;

  /** `written` resolves when the session's current state is on disk. `onSent` is called after waiting deliveries were sent or have failed. */
  constructor({ peer, written, onSent, onFailed }: OutgoingParts) {
    this.#peer = peer;
    this.#written = written;
    this.#onSent = onSent;
    this.#onFailed = onFailed;
  }

  /** Number of waiting deliveries. */
  get size(): number {
    return this.#waiting.length;
  }

  send(delivery: Delivery, { afterWrite }: { readonly afterWrite: boolean }): void {
    if (!afterWrite && this.#waiting.length === 0) {
      this.#deliver(delivery);
      return;
    }
    const waiting = { delivery, isWritten: !afterWrite };
    this.#waiting.push(waiting);
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
    this.#sendWritten();
  }

  async #releaseWhenWritten(ticket: Ticket): Promise<void> {
    await this.#written();
    this.#releasing.delete(ticket);
    if (!this.#isClosed) this.#peer.release(ticket);
  }

  #sendWritten(): void {
    if (this.#isClosed) return;
    for (let [first] = this.#waiting; first?.isWritten === true; [first] = this.#waiting) {
      this.#waiting.shift();
      this.#deliver(first.delivery);
    }
    this.#onSent();
  }
}
