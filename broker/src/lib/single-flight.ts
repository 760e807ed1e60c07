/** Single-flight reads: concurrent callers share one read. It begins after each of them called, so nobody gets an older value. */
export class SingleFlight<T> {
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
