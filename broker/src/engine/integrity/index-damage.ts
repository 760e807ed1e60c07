/** Known damage of a group's index that the chain could not mend. */
export class IndexDamage {
  #reason: string | undefined;
  #isOfThisRound = false;

  /** The warning for the operator; undefined while there is no damage. */
  get warning(): string | undefined {
    if (this.#reason === undefined) return undefined;
    return (
      `${this.#reason}, and not mended: calls for these events fail with 200208. Start the broker again, which builds the index anew where its tables ` +
      "do not fit each other. If the damage stays, restore store.sqlite, or the database, from a backup"
    );
  }

  /** Scrubbing found it. */
  note(reason: string): void {
    if (!this.#isOfThisRound) this.#reason = reason;
    this.#isOfThisRound = true;
  }

  /** Scrubbing has read the whole index: damage that it did not find again is gone. */
  endRound(): void {
    if (!this.#isOfThisRound) this.#reason = undefined;
    this.#isOfThisRound = false;
  }
}
