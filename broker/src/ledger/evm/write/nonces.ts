/** The nonces of one key. */
export class Nonces {
  /** Every lower nonce is used, here or by somebody else with our key. */
  #next = 0;
  #isKnown = false;

  /** False if the chain must be asked before the next nonce. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The next nonce; undefined if the chain must be asked. */
  take(): number | undefined {
    if (!this.#isKnown) return undefined;
    this.#next += 1;
    return this.#next - 1;
  }

  /** Returns an unused nonce. False if later ones are in use. */
  giveBack(nonce: number): boolean {
    if (this.#next !== nonce + 1) return false;
    this.#next = nonce;
    return true;
  }

  /** Takes the chain's count, with its pool. It never lowers the next nonce. */
  onCount(count: number): void {
    this.atLeast(count);
    this.#isKnown = true;
  }

  /** `nonce` is the lowest free one. */
  atLeast(nonce: number): void {
    this.#next = Math.max(this.#next, nonce);
  }

  /** Makes the chain be asked again: somebody else may have used nonces, or the chain is unreachable. */
  doubt(): void {
    this.#isKnown = false;
  }
}
