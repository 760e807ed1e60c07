/**
 * Lets callers that come together share one reading; it begins after each of them came, so that none is answered with what was before. The first
 * of them says what to read `from`.
 */
export class SharedRead<T, From = void> {
  readonly #read: (from: From) => Promise<T>;
  #next: Promise<T> | undefined;
  #underWay: Promise<unknown> = Promise.resolve();

  constructor(read: (from: From) => Promise<T>) {
    this.#read = read;
  }

  read(from: From): Promise<T> {
    this.#next ??= this.#begin(from);
    return this.#next;
  }

  async #begin(from: From): Promise<T> {
    await this.#underWay;
    this.#next = undefined;
    const reading = this.#read(from);
    this.#underWay = reading.catch(() => undefined);
    return reading;
  }
}
