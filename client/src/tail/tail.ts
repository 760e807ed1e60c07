import { type HttpTransport, isRecord } from "../http-transport.ts";
import { pause, pauseMs } from "../lib/backoff.ts";
import { AbortScope } from "../lib/abort-scope.ts";
import type { CallOptions } from "../options.ts";
import { SteleError } from "../stele-error.ts";
import { Connection } from "./connection.ts";
import type { Frame } from "./frame-parser.ts";
import type { ReceivedEvent } from "./received-event.ts";

/** A reorg removed events: those after the place `after` may be gone. The tail continues with the events that the chain now has after that place. */
export interface Resync {
  readonly after: string;
}

/** A connection has ended or could not be made; the tail connects again after `delayMs`. */
export interface Reconnect {
  readonly reason: string;
  readonly delayMs: number;
}

export interface SubscribeOptions extends CallOptions {
  /** Where to start: `OFFSET_FIRST`, `OFFSET_LAST`, an eventId, the `place` of an earlier tail, or a time. After the newest event if left out. */
  readonly after?: string | Date | undefined;
  /**
   * The `place` of an earlier tail, to continue as that tail would after a reconnect. If a reorg removed the place meanwhile, `onResync` is called; with
   * `after`, the tail would fail. Overrides `after`.
   */
  readonly place?: string | undefined;
  /** Only events with these values in their content; see docs/tail.md. */
  readonly filter?: string | undefined;
  /** Called between events. A client that stores results by eventId should drop the results of events after `resync.after`. */
  readonly onResync?: ((resync: Resync) => void) | undefined;
  /** Called after each successful connect, also the first. */
  readonly onConnect?: (() => void) | undefined;
  readonly onReconnect?: ((reconnect: Reconnect) => void) | undefined;
  /** Longest pause before a reconnect, in milliseconds. 30,000 if left out. */
  readonly reconnectMsMax?: number | undefined;
}

export interface TailOptions<Item> extends SubscribeOptions {
  readonly topics: readonly string[];
  /** Form of the events; the parameter `format` of `/tail`. */
  readonly format?: "cloudevents";
  /** Makes an event from a frame's data; `value` is `text` as parsed JSON. @throws SteleError if the data is not an event. */
  readonly read: (value: unknown, text: string) => Item;
  /** Retries of the first connection. Once a tail was connected, it reconnects without limit. */
  readonly retries: number;
}

const reconnectMsMaxDefault = 30_000;
/** Pause before the first reconnect, unless the broker asks for another. */
const reconnectMsDefault = 1_000;

/**
 * Events of topics, as they come. At most 1 MiB of events, or one longer event, waits in memory for the loop. Beyond that, the tail closes its connection, and
 * reconnects once the loop has taken the waiting events. Use a tail in one loop at a time; a later loop continues where the earlier one ended.
 */
export class Tail<Item = ReceivedEvent> implements AsyncIterable<Item> {
  readonly #transport: HttpTransport;
  readonly #options: TailOptions<Item>;
  #connection: Connection | undefined;
  /** Aborted by the caller's signal and by `close`. Exists from the first connection to the end of the loop. */
  #scope: AbortScope | undefined;
  #isClosed = false;
  #place: string | undefined;
  /** The first connection, while it is made. */
  #opening: Promise<void> | undefined;
  /** A frame that `opened` read and the loop has not taken yet. */
  #peeked: Frame | undefined;
  #hasConnected = false;
  /** Consecutive failed connections. */
  #failures = 0;
  #reconnectMs = reconnectMsDefault;
  /** Why the present connection ends, if the broker has said so. */
  #endReason: string | undefined;

  constructor(transport: HttpTransport, options: TailOptions<Item>) {
    this.#transport = transport;
    this.#options = options;
    this.#place = options.place;
  }

  /** The loop has got every event up to this place. Give it to another tail as `place` to continue. Undefined before the first connection of a new tail. */
  get place(): string | undefined {
    return this.#place;
  }

  /** Connects before a loop starts, so that the loop gets every event published after this call. @throws SteleError; the reason of an aborted signal. */
  opened(): Promise<void> {
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  /** Ends the tail permanently, even while it connects. A loop over it ends without an error. */
  close(): void {
    this.#isClosed = true;
    this.#scope?.abort();
    this.#disconnect();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    try {
      await this.opened(); // A call of `opened` at the same time must not read another frame.
      for (let frame = await this.#nextOrEnd(); frame !== undefined; frame = await this.#nextOrEnd()) {
        const event = this.#take(frame);
        if (event !== undefined) yield event;
      }
    } finally {
      this.#disconnect();
    }
  }

  async #open(): Promise<void> {
    if (this.#hasConnected) return;
    const frame = await this.#nextOrEnd();
    if (frame === undefined) return;
    if (frame.data === "") this.#take(frame);
    else this.#peeked = frame;
  }

  #disconnect(): void {
    this.#hangUp();
    this.#peeked = undefined;
    this.#failures = 0; // The next loop, or the next call of `opened`, has all its tries.
    this.#scope?.close();
    this.#scope = undefined;
  }

  #hangUp(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  /** The next frame; undefined once the tail is closed. */
  async #nextOrEnd(): Promise<Frame | undefined> {
    if (this.#isClosed) return undefined;
    this.#scope ??= new AbortScope(this.#options.signal);
    try {
      return await this.#next(this.#scope.signal);
    } catch (error) {
      this.#disconnect();
      if (this.#isClosed) return undefined;
      throw error;
    }
  }

  /** The next frame of this connection, or of a later one. */
  async #next(signal: AbortSignal): Promise<Frame> {
    const peeked = this.#peeked;
    this.#peeked = undefined;
    if (peeked !== undefined) return peeked;
    for (;;) {
      signal.throwIfAborted();
      const failure = await this.#read(signal);
      if (!(failure instanceof SteleError)) return failure;
      this.#hangUp();
      const { retries } = this.#options;
      if (!failure.retry || (!this.#hasConnected && this.#failures >= retries)) throw failure;
      const delayMs = this.#toDelayMs(failure);
      this.#options.onReconnect?.({ reason: failure.message, delayMs });
      this.#failures += 1;
      await pause(delayMs, signal);
    }
  }

  /** A frame, or why there is none. @throws the reason of an aborted signal. */
  async #read(signal: AbortSignal): Promise<Frame | SteleError> {
    try {
      if (this.#connection?.isSpent === true) this.#hangUp();
      if (this.#connection === undefined) {
        this.#connection = await this.#connect(signal);
        this.#endReason = undefined;
        this.#options.onConnect?.();
      }
      const frame = await this.#connection.next();
      if (frame === undefined) return new SteleError(this.#endReason ?? "the connection ended", { retry: true });
      this.#hasConnected = true;
      this.#failures = 0;
      return frame;
    } catch (error) {
      if (error instanceof SteleError) return error;
      throw error;
    }
  }

  #connect(signal: AbortSignal): Promise<Connection> {
    const { topics, groupId, after, filter, format, traceparent } = this.#options;
    const query = new URLSearchParams();
    for (const topic of topics) query.append("topic", topic);
    if (groupId !== undefined) query.set("groupId", groupId);
    if (after !== undefined) query.set("after", after instanceof Date ? after.toISOString() : after);
    if (filter !== undefined) query.set("filter", filter);
    if (format !== undefined) query.set("format", format);
    return Connection.open(this.#transport, {
      url: `${this.#transport.base}/tail?${query.toString()}`,
      place: this.#place,
      signal,
      traceparent,
      onRetryMs: (ms) => (this.#reconnectMs = ms),
    });
  }

  /** Moves the place. Returns the frame's event; undefined for other frames, such as those that only a newer broker sends. */
  #take({ id, name, data }: Frame): Item | undefined {
    const event = name === "message" && data !== "" ? this.#options.read(parse(data), data) : undefined;
    if (id !== undefined) this.#place = id;
    if (name === "resync") this.#options.onResync?.({ after: findText(data, "after") ?? id ?? "" });
    if (name === "end") this.#endReason = `the broker ended the tail: ${findText(data, "reason") ?? data}`;
    return event;
  }

  /**
   * The pause before the next connection, in milliseconds. The first pause is not random: the broker asks each client for a different one, so that clients do
   * not return at the same time.
   */
  #toDelayMs({ retryAfterMs = 0 }: SteleError): number {
    const { reconnectMsMax = reconnectMsMaxDefault } = this.#options;
    const ms =
      this.#failures === 0
        ? this.#reconnectMs
        : pauseMs(this.#failures, { baseMs: this.#reconnectMs, maxMs: reconnectMsMax });
    return Math.min(Math.max(ms, retryAfterMs), reconnectMsMax);
  }
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function findText(data: string, name: string): string | undefined {
  const value = parse(data);
  const text = isRecord(value) ? value[name] : undefined;
  return typeof text === "string" ? text : undefined;
}
