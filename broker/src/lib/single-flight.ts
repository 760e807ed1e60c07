/**
 * Single-flight reads: concurrent callers share one read. It begins after each of them called, so nobody gets an older value. The first of them
 * says what to read `from`.
 */
export class SingleFlight<T, From = void> {
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
