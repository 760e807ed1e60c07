import type { HttpClient } from "../../harness/http-client.ts";

/** Publishers that go on until they are told to stop, and the clients that they send with. */
export class PublisherRun {
  readonly #clients: readonly HttpClient[];
  readonly #ended: Promise<unknown>;
  #isStopping = false;

  /** Each publisher ends soon after `isStopping` answers true, and never rejects. */
  constructor(clients: readonly HttpClient[], publishers: readonly ((isStopping: () => boolean) => Promise<void>)[]) {
    this.#clients = clients;
    this.#ended = Promise.all(publishers.map((publish) => publish(() => this.#isStopping)));
  }

  /** Lets the publishes under way end, or break when the broker is gone. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#ended;
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
  }
}
