/** Admits one caller at a time, first come, first served. */
export class Mutex {
  #isHeld = false;
  readonly #waiting: (() => void)[] = [];

  async acquire(): Promise<void> {
    if (!this.#isHeld) {
      this.#isHeld = true;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#isHeld = false;
    else next();
  }
}
