/**
 * Single-flight reads: concurrent callers share one read. The read begins after each of them called, so nobody gets an older value. It uses the
 * `from` of the first caller.
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
