import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { until } from "../../harness/until.ts";

interface Callback {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A receiver that records every callback. It answers the validation request with 405; a broker that requires consent then sends a ping. */
export class Webhooks implements AsyncDisposable {
  readonly #server: Server;
  readonly #callbacks = new Map<string, Callback[]>();

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        if (request.method === "POST")
          this.#keep(request.url ?? "", { headers: request.headers, body: Buffer.concat(chunks) });
        response.writeHead(request.method === "POST" ? 204 : 405).end();
      });
    });
  }

  static async start(): Promise<Webhooks> {
    const webhooks = new Webhooks();
    webhooks.#server.listen(0, "127.0.0.1");
    await once(webhooks.#server, "listening");
    return webhooks;
  }

  /** The callback url for the subscription with this path. */
  urlOf(path: string): string {
    const { port } = this.#server.address() as AddressInfo; // It listens on a port.
    return `http://127.0.0.1:${port}/${path}`;
  }

  /** Waits for the first `count` callbacks to this path. */
  async take(path: string, count: number): Promise<readonly Callback[]> {
    return until(`${count} callbacks have arrived`, () => {
      const all = this.#callbacks.get(`/${path}`) ?? [];
      return all.length >= count && all.slice(0, count);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, "close");
  }

  #keep(path: string, callback: Callback): void {
    this.#callbacks.set(path, [...(this.#callbacks.get(path) ?? []), callback]);
  }
}
