import type { CancelSignal } from "../../lib/cancellation.ts";
import type { AttemptSlot, CallbackTarget, Sink } from "../../ports/sink.ts";

/** Whose turn it is, and at which receiver. */
export interface TurnOrder {
  readonly sink: Pick<Sink, "enter">;
  readonly target: CallbackTarget;
  /** Waits for the turn of an attempt; undefined where it may be made at once. */
  readonly turn: ((signal: CancelSignal) => Promise<void> | undefined) | undefined;
  /** Ends the wait. */
  readonly stopping: CancelSignal;
}

/**
 * The turn of a worker's next attempt, which it waits for before it takes an event: tens of thousands of workers may wait for one receiver, and this wait
 * holds a tenth of what an attempt holds that waits for its connection.
 */
export class AttemptTurn {
  #slot: AttemptSlot | undefined;
  #hasCome = false;

  /** Whether the next attempt has had its turn. */
  get hasCome(): boolean {
    return this.#hasCome;
  }

  /** Waits; undefined where no wait is needed. */
  enter({ sink, target, turn, stopping }: TurnOrder): Promise<void> | undefined {
    this.#hasCome = true;
    const paced = turn?.(stopping);
    const entered = paced === undefined ? sink.enter(target, stopping) : paced.then(() => sink.enter(target, stopping));
    if (entered instanceof Promise) return entered.then((slot) => void (this.#slot = slot));
    this.#slot = entered;
    return undefined;
  }

  /** Call it when the attempt has ended, and before any other wait. */
  leave(): void {
    this.leaveSlot();
    this.#hasCome = false;
  }

  /** Lets others begin, and keeps the turn: an attempt needs no slot. Call it before a wait after which the attempt follows. */
  leaveSlot(): void {
    this.#slot?.leave();
    this.#slot = undefined;
  }
}
