/** The one count of nonces for a key. */
export class Nonces {
  /** Every nonce below it was given out, here or by somebody else with our key. */
  #next = 0;
  #isKnown = false;

  /** False when the chain has to be asked before the next nonce is given out. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The next nonce; undefined when the chain has to be asked. */
  take(): number | undefined {
    if (!this.#isKnown) return undefined;
    this.#next += 1;
    return this.#next - 1;
  }

  /** Gives back a nonce that nothing used. False when others were given out after it. */
  giveBack(nonce: number): boolean {
    if (this.#next !== nonce + 1) return false;
    this.#next = nonce;
    return true;
  }

  /** What the chain counts, what waits in its pool included. Nonces given out here are never given out again by it. */
  onCount(count: number): void {
    this.atLeast(count);
    this.#isKnown = true;
  }

  /** `nonce` is the lowest that is free. */
  atLeast(nonce: number): void {
    this.#next = Math.max(this.#next, nonce);
  }

  /** The chain has to be asked again: somebody else may have used some, or it cannot be reached. */
  doubt(): void {
    this.#isKnown = false;
  }
}
