import { type HttpAnswer, HttpClient, type HttpRequest, type HttpSender } from "./http-client.ts";
import type { Random } from "./random.ts";

/** Sends each request to one of several brokers, picked at random. */
export class SpreadClient implements HttpSender {
  readonly #clients: readonly HttpClient[];
  readonly #random: Random;

  constructor(urls: readonly string[], random: Random) {
    this.#clients = urls.map((url) => new HttpClient(url));
    this.#random = random;
  }

  send(request: HttpRequest): Promise<HttpAnswer> {
    return this.#random.pick(this.#clients).send(request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
  }
}
