import type { Address } from "../../domain/topic.ts";

/** Foreign contracts kept, which write logs under our signatures; the oldest makes room. */
const foreignMax = 4096;

/** Whether an address was a topic after a block. It must not be denied by an endpoint that does not know the block yet. */
export type AskTopic = (address: Address, blockNumber: number) => Promise<boolean>;

/** Which addresses are topics of our registry. A topic's address can hold nothing else, ever, so every answer may be kept. */
export class TopicSet {
  readonly #topics = new Set<Address>();
  readonly #foreign = new Set<Address>();
  readonly #ask: AskTopic;

  constructor(ask: AskTopic) {
    this.#ask = ask;
  }

  /** To be told of every topic that the registry says to have opened. */
  add(address: Address): void {
    this.#topics.add(address);
  }

  /** Answers at once where it can: a promise an event would cost more than the rest of reading it. */
  has(address: Address, blockNumber: number): boolean | Promise<boolean> {
    if (this.#topics.has(address)) return true;
    return this.#foreign.has(address) ? false : this.#learn(address, blockNumber);
  }

  async #learn(address: Address, blockNumber: number): Promise<boolean> {
    const isTopic = await this.#ask(address, blockNumber);
    if (isTopic) this.#topics.add(address);
    else this.#addForeign(address);
    return isTopic;
  }

  #addForeign(address: Address): void {
    this.#foreign.add(address);
    const [oldest] = this.#foreign;
    if (this.#foreign.size > foreignMax && oldest !== undefined) this.#foreign.delete(oldest);
  }
}
