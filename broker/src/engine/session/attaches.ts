import { BrokerError } from "@stele/wire";

/** The attaches in progress. A broker that stops refuses new attaches, and closes the store only after the last one has ended. */
export class Attaches {
  readonly #running = new Set<Promise<unknown>>();
  #isClosed = false;

  /** @throws BrokerError 200300 after {@link close}. */
  async run<T>(attach: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new BrokerError("busy", { details: "the broker is stopping" });
    const running = attach();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Refuses new attaches, and resolves when the last one has ended. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
  }
}
