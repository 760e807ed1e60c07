import { setMaxListeners } from "node:events";

/** The part of an AbortSignal that a wait needs. The Sink port declares the same type. */
export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * A controller and its signal in one small object, for each of tens of thousands of owners. An AbortController with its signal takes 790 bytes, and each
 * listener 120 more; this takes 40, and with two to five listeners 150 more in all. Listeners run once and must not throw.
 */
export class Cancellation implements CancelSignal {
  #isAborted = false;
  /** Most instances have only one listener. */
  #first: (() => void) | undefined;
  #others: Set<() => void> | undefined;

  get aborted(): boolean {
    return this.#isAborted;
  }

  abort(): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    const first = this.#first;
    this.#first = undefined;
    first?.();
    for (const listener of this.#others ?? []) listener();
    this.#others = undefined;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (this.#isAborted) return;
    if (this.#first === undefined && this.#others === undefined) this.#first = listener;
    else if (this.#first !== listener) (this.#others ??= new Set()).add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    if (this.#first === listener) this.#first = undefined;
    else if (this.#others?.delete(listener) === true && this.#others.size === 0) this.#others = undefined;
  }
}

/** Node warns of more than ten listeners of one AbortSignal. Call this for a signal that many waits share. */
export function allowManyListeners(signal: CancelSignal): void {
  if (signal instanceof EventTarget) setMaxListeners(0, signal);
}

/** A signal that never aborts. It is no AbortSignal, because that compares each new listener with all others, and tens of thousands of calls may wait. */
export const unaborted: CancelSignal = new Cancellation();
