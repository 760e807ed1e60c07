import type { IncomingHttpHeaders } from "node:http";
import { Agent } from "undici";

export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE" | "HEAD" | "OPTIONS" | "PATCH";
  /** Path after the base URL, with the query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON. @throws SyntaxError if it is not JSON. */
  json(): unknown;
}

/** Sends requests to a broker. */
export interface HttpSender extends AsyncDisposable {
  send(request: HttpRequest): Promise<HttpAnswer>;
}

/** Connections of one client. Further calls wait until a connection is free. */
const connectionsMax = 128;
const timeoutDefaultMs = 60_000;

export interface HttpClientOptions {
  readonly timeoutMs?: number;
  /** Local address of the connections; by default the system chooses. */
  readonly localAddress?: string | undefined;
}

/** Keep-alive connections to one broker process. */
export class HttpClient implements HttpSender {
  readonly url: string;
  readonly #agent: Agent;

  constructor(url: string, { timeoutMs = timeoutDefaultMs, localAddress }: HttpClientOptions = {}) {
    this.url = url;
    this.#agent = new Agent({
      connections: connectionsMax,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      ...(localAddress === undefined ? {} : { localAddress }),
    });
  }

  async send({ method, path, headers = {}, body }: HttpRequest): Promise<HttpAnswer> {
    const { origin, pathname } = new URL(this.url);
    const base = pathname === "/" ? "" : pathname;
    const answer = await this.#agent.request({
      origin,
      path: `${base}${path}`,
      method,
      headers,
      body: body === undefined ? null : body,
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, headers: answer.headers, text, json: () => JSON.parse(text) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
  }
}
