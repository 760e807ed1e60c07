import {
  findRestError,
  type HttpAnswer,
  type HttpTransport,
  isTransient,
  readAnswer,
  toCutAnswerError,
  toForeignAnswerError,
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
/** Maximum length of the frames that wait for the loop. Beyond it, the client closes the connection. One frame may be longer. */
const waitingCharactersMax = 1024 * 1024;
/** Characters added to the length of each frame: even a frame without data takes memory. */
const frameCharacters = 100;

/**
 * The response to one request to `/tail`. It reads ahead instead of pausing the response: the `fetch` of Node 22 and 24 ends the process if a paused
 * response ends (nodejs/undici issue 5360).
 */
export class Connection {
  readonly #url: string;
  readonly #signal: AbortSignal | undefined;
  readonly #scope: AbortScope;
  readonly #decoder = new TextDecoder();
  readonly #parser: FrameParser;
  /** Frames that wait for the loop, and their length. */
  readonly #frames: Frame[] = [];
  #characters = 0;
  /** The read that is under way. */
  #reading: Promise<void> | undefined;
  #isEnded = false;
  #isFull = false;

  private constructor(options: ConnectionOptions) {
    this.#url = options.url;
    this.#signal = options.signal;
    this.#scope = new AbortScope(options.signal);
    this.#parser = new FrameParser(options);
  }

  /** Connects. @throws SteleError if the broker refuses or does not answer; the reason of an aborted signal. */
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

  /** Whether the client closed this connection because too many frames waited, and the loop has now taken all of them. */
  get isSpent(): boolean {
    return this.#isFull && this.#frames.length === 0;
  }

  /** The next frame, or undefined at the end of the response. @throws SteleError if the connection breaks; the reason of an aborted signal. */
  async next(): Promise<Frame | undefined> {
    while (this.#frames.length === 0 && !this.#isEnded) await this.#guarded(async () => this.#reading);
    const frame = this.#frames.shift();
    if (frame !== undefined) this.#characters -= frame.data.length + frameCharacters;
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
    // Node 20 may forget a request's signal once the response begins.
    const cancel = (): void => void reader.cancel().catch(() => {});
    this.#scope.signal.addEventListener("abort", cancel, { once: true });
    this.#readAhead(reader);
  }

  #readAhead(reader: ReadableStreamDefaultReader<Uint8Array>): void {
    this.#reading = this.#readChunk(reader);
    this.#reading.catch(() => {}); // `next` throws the error after the loop has taken the earlier frames.
  }

  async #readChunk(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const { value } = await reader.read();
    if (value !== undefined) this.#add(this.#parser.push(this.#decoder.decode(value, { stream: true })));
    this.#isFull = this.#characters > waitingCharactersMax;
    this.#isEnded = value === undefined || this.#isFull;
    if (!this.#isEnded) this.#readAhead(reader);
    else if (this.#isFull) void reader.cancel().catch(() => {});
  }

  #add(frames: readonly Frame[]): void {
    for (const frame of frames) {
      this.#frames.push(frame);
      this.#characters += frame.data.length + frameCharacters;
    }
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
      throw toCutAnswerError(error, this.#url);
    } finally {
      this.#scope.stopTimer();
    }
  }
}

/**
 * The error for a refused tail. Allows a retry after any failure of the server, even if the answer forbids it: a tail changes nothing, and another node may
 * serve it.
 */
function toRefusal(answer: HttpAnswer, url: string): SteleError {
  const { status } = answer;
  const retry = isTransient(status);
  return findRestError(retry ? { ...answer, retry } : answer) ?? toForeignAnswerError(url, answer);
}
