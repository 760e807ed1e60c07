import type { HttpClient } from "../../harness/http-client.ts";

/** Running publishers and their clients. */
export class PublisherRun {
  readonly #clients: readonly HttpClient[];
  readonly #ended: Promise<unknown>;
  #isStopping = false;

  /** Each publisher ends soon after `isStopping` returns true, and never rejects. */
  constructor(clients: readonly HttpClient[], publishers: readonly ((isStopping: () => boolean) => Promise<void>)[]) {
    this.#clients = clients;
    this.#ended = Promise.all(publishers.map((publish) => publish(() => this.#isStopping)));
  }

  /** Stops after the publishes in progress, which fail if the broker is gone. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#ended;
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
  }
}
