/** Lets callers that come together share one reading; it begins after each of them came, so that none is answered with what was before. */
export class SharedRead<T> {
  readonly #read: () => Promise<T>;
  #next: Promise<T> | undefined;
  #underWay: Promise<unknown> = Promise.resolve();

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  read(): Promise<T> {
    this.#next ??= this.#begin();
    return this.#next;
  }

  async #begin(): Promise<T> {
    await this.#underWay;
    this.#next = undefined;
    const reading = this.#read();
    this.#underWay = reading.catch(() => undefined);
    return reading;
  }
}
