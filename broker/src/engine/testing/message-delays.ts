/** Delays messages to and from the shared store, each by the next of the given times, while `isOn`. */
export class MessageDelays {
  isOn = false;
  readonly #delaysMs: readonly number[];
  #messages = 0;

  constructor(delaysMs: readonly number[]) {
    this.#delaysMs = delaysMs;
  }

  /** The delay of the next message, in milliseconds. */
  readonly next = (): number => {
    if (!this.isOn) return 0;
    this.#messages += 1;
    return this.#delaysMs[this.#messages % this.#delaysMs.length] ?? 0;
  };
}
