import { BrokerError } from "@stele/wire";

/** The attaches under way. The store closes only after the last of them, and none begins once the broker stops. */
export class Attaches {
  readonly #running = new Set<Promise<unknown>>();
  #isClosed = false;

  /** @throws BrokerError 200300 when {@link close} was called. */
  async run<T>(attach: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new BrokerError("busy", { details: "the broker stops" });
    const running = attach();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** From now on none begins. Answers when the last has ended; never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#running);
  }
}
