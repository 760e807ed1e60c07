import type { CancelSignal } from "../../lib/cancellation.ts";
import type { AttemptSlot, CallbackTarget, Sink } from "../../ports/sink.ts";

/** What an attempt waits for before it begins: its owner's quota, and a slot of its receiver (see `Sink.enter`). */
export interface TurnRequest {
  readonly sink: Pick<Sink, "enter">;
  readonly target: CallbackTarget;
  /** Waits until the owner's quota allows an attempt; undefined if it needs no wait. */
  readonly turn: ((signal: CancelSignal) => Promise<void> | undefined) | undefined;
  /** Ends the wait. */
  readonly stopping: CancelSignal;
}

/**
 * The turn of a worker's next attempt. The worker waits for it before it takes an event from its feed: tens of thousands of workers may wait for one
 * receiver, and this wait needs a tenth of the memory of an attempt that waits for its connection. During the wait, the feed may drop the event to save
 * memory. Then the worker keeps its turn while it reads the event again: if it waited for another turn, it could lose the event again, and so on forever.
 */
export class AttemptTurn {
  #slot: AttemptSlot | undefined;
  #hasCome = false;

  /** Whether the next attempt has had its turn. */
  get hasCome(): boolean {
    return this.#hasCome;
  }

  /** Waits for the turn; undefined if it comes at once. */
  enter({ sink, target, turn, stopping }: TurnRequest): Promise<void> | undefined {
    this.#hasCome = true;
    const paced = turn?.(stopping);
    const entered = paced === undefined ? sink.enter(target, stopping) : paced.then(() => sink.enter(target, stopping));
    if (entered instanceof Promise) return entered.then((slot) => void (this.#slot = slot));
    this.#slot = entered;
    return undefined;
  }

  /** Call it when the attempt has ended, and before a wait after which the worker needs a new turn. */
  leave(): void {
    this.leaveSlot();
    this.#hasCome = false;
  }

  /** Gives the receiver's slot to another attempt, but keeps the turn. Call it before the attempt has to wait for an event's origin. */
  leaveSlot(): void {
    this.#slot?.leave();
    this.#slot = undefined;
  }
}
