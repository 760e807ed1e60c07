/** What an operator can do about damage that the chain cannot repair. */
export const indexRemedy =
  "Start the broker again: it rebuilds the index if its tables contradict each other. If the damage stays, repair it with store.sqlite of " +
  "a backup, as docs/backup.md#repair says, or restore the database";

/** Known damage of a group's index that could not be repaired from the chain. */
export class IndexDamage {
  #reason: string | undefined;
  #isOfThisRound = false;

  /** The warning for the operator; undefined while there is no damage. */
  get warning(): string | undefined {
    if (this.#reason === undefined) return undefined;
    return `${this.#reason}, and not repaired: calls for these events fail with 200208. ${indexRemedy}`;
  }

  /** Call it when a scrub begins. An earlier one may have ended early. */
  beginRound(): void {
    this.#isOfThisRound = false;
  }

  /** Call it when a scrub has found damage. */
  note(reason: string): void {
    if (!this.#isOfThisRound) this.#reason = reason;
    this.#isOfThisRound = true;
  }

  /** Call it when a scrub has read the whole index: forgets damage that this scrub did not find. */
  endRound(): void {
    if (!this.#isOfThisRound) this.#reason = undefined;
  }
}
