export class Nonces {
  /** The next nonce: all lower ones are used, by this process or by another user of the key. */
  #next = 0;
  #isKnown = false;

  /** False if the chain must be asked before the next nonce. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Takes the next nonce; undefined if the chain must be asked first. */
  take(): number | undefined {
    if (!this.#isKnown) return undefined;
    this.#next += 1;
    return this.#next - 1;
  }

  /** Takes back an unused nonce; false if later ones are in use. */
  giveBack(nonce: number): boolean {
    if (this.#next !== nonce + 1) return false;
    this.#next = nonce;
    return true;
  }

  /** Call it with the chain's transaction count, pending ones included. It never lowers the next nonce. */
  onCount(count: number): void {
    this.atLeast(count);
    this.#isKnown = true;
  }

  /** Call it when every nonce below `nonce` is used. */
  atLeast(nonce: number): void {
    this.#next = Math.max(this.#next, nonce);
  }

  /** Requires a new count from the chain: somebody else may have used nonces, or the chain is unreachable. */
  doubt(): void {
    this.#isKnown = false;
  }
}
