import {
  findRestError,
  type HttpAnswer,
  type HttpTransport,
  isTransient,
  readAnswer,
  toForeignAnswer,
  toUnanswered,
} from "../http-transport.ts";
import { AbortScope } from "../lib/abort-scope.ts";
import type { CallOptions } from "../options.ts";
import { SteleError } from "../stele-error.ts";
import { type Frame, FrameParser, type FrameParserOptions } from "./frame-parser.ts";

export interface ConnectionOptions extends CallOptions, FrameParserOptions {
  readonly url: string;
  /** Where this connection continues: the id of the last frame of the previous connection. Undefined for the first connection. */
  readonly place: string | undefined;
}

/** Three times the broker's heartbeat interval: a connection that is silent for longer is dead. */
const silenceMsMax = 45_000;
const contentType = "text/event-stream";

/** The response to one request to `/tail`. */
export class Connection {
  readonly #url: string;
  readonly #signal: AbortSignal | undefined;
  readonly #scope: AbortScope;
  readonly #decoder = new TextDecoder();
  readonly #parser: FrameParser;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #frames: readonly Frame[] = [];
  #at = 0;

  private constructor(options: ConnectionOptions) {
    this.#url = options.url;
    this.#signal = options.signal;
    this.#scope = new AbortScope(options.signal);
    this.#parser = new FrameParser(options);
  }

  /** @throws SteleError if the broker refuses or does not answer; the reason of the signal. */
  static async open(transport: HttpTransport, options: ConnectionOptions): Promise<Connection> {
    const connection = new Connection(options);
    try {
      await connection.#guarded(() => connection.#open(transport, options));
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** The next frame, or undefined at the end of the response. @throws SteleError if the connection breaks; the reason of the signal. */
  async next(): Promise<Frame | undefined> {
    while (this.#at >= this.#frames.length) {
      const value = await this.#guarded(async () => (await this.#reader?.read())?.value);
      if (value === undefined) return undefined;
      this.#frames = this.#parser.push(this.#decoder.decode(value, { stream: true }));
      this.#at = 0;
    }
    const frame = this.#frames[this.#at];
    this.#at += 1;
    return frame;
  }

  close(): void {
    this.#scope.abort();
    this.#scope.close();
  }

  async #open(transport: HttpTransport, { place, ...options }: ConnectionOptions): Promise<void> {
    const headers = { accept: contentType, ...(place === undefined ? {} : { "last-event-id": place }) };
    const request = { url: this.#url, method: "GET", headers } as const;
    const response = await transport.open(request, { ...options, signal: this.#scope.signal });
    const isStream = response.headers.get("content-type")?.startsWith(contentType) === true;
    if (!response.ok || !isStream || response.body === null) {
      throw toRefusal(await readAnswer(response, this.#url), this.#url);
    }
    const reader = response.body.getReader();
    this.#reader = reader;
    // Node 20 may forget a request's signal once the response begins.
    const cancel = (): void => void reader.cancel().catch(() => {});
    this.#scope.signal.addEventListener("abort", cancel, { once: true });
  }

  /** Runs a task, and ends the connection if nothing comes for `silenceMsMax`. */
  async #guarded<Result>(task: () => Promise<Result>): Promise<Result> {
    this.#scope.abortAfter(
      silenceMsMax,
      () => new SteleError(`${this.#url} sent nothing for ${silenceMsMax / 1000} s`, { retry: true }),
    );
    try {
      const result = await this.#scope.race(task());
      this.#scope.signal.throwIfAborted();
      return result;
    } catch (error) {
      this.#signal?.throwIfAborted();
      if (this.#scope.signal.aborted) throw this.#scope.signal.reason;
      if (error instanceof SteleError) throw error;
      throw toUnanswered(error, { url: this.#url, signal: undefined });
    } finally {
      this.#scope.stopTimer();
    }
  }
}

/**
 * The error for a refused tail. It allows a retry after any server failure, even if the answer says otherwise: a tail changes nothing, and another node may
 * serve it.
 */
function toRefusal(answer: HttpAnswer, url: string): SteleError {
  const { status } = answer;
  const retry = isTransient(status);
  return findRestError(retry ? { ...answer, retry } : answer) ?? toForeignAnswer(url, answer);
}
