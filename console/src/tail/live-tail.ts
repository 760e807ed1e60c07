import type { Reconnect, Resync, Stele, Tail } from "@stele/client";
import { blockOfPlace } from "../lib/event-id.ts";
import { EventBuffer } from "./event-buffer.ts";

/** Rows that a tail keeps unless its view shows fewer. */
const eventsKeptMax = 10_000;
/** Characters of the contents and extensions of the rows that a tail keeps: about 64 MiB of memory. */
const charactersMax = 32 * 2 ** 20;

export interface TailQuery {
  /** Topic or pattern. */
  readonly topic: string;
  /** Where the tail starts; after the newest event if undefined. */
  readonly after: string | undefined;
  /** Condition on the content; see docs/tail.md. */
  readonly filter: string | undefined;
  /** Group of the topic; the default group if undefined. */
  readonly groupId: string | undefined;
}

export interface LiveTailOptions {
  /** Calls an action before the browser next renders. */
  readonly onFrame: (action: () => void) => void;
  /** Events to keep, at most. */
  readonly eventsMax?: number | undefined;
}

export type TailStatus =
  | { readonly name: "connecting" | "live" | "paused" | "ended" }
  | { readonly name: "reconnecting"; readonly reason: string }
  | { readonly name: "failed"; readonly error: unknown };

/**
 * A tail that a person can pause. A paused tail has no connection, so it costs the broker nothing. It remembers its place and continues there, so it misses
 * no event.
 */
export class LiveTail {
  readonly query: TailQuery;
  readonly events: EventBuffer;
  readonly #stele: Stele;
  readonly #onFrame: LiveTailOptions["onFrame"];
  readonly #listeners = new Set<() => void>();
  #version = 0;
  #status: TailStatus = { name: "paused" };
  /** The buffer has received every event up to this place. */
  #place: string | undefined;
  #connection: AbortController | undefined;
  #isPausing = false;
  #isNotifying = false;
  #resync: Resync | undefined;

  constructor(stele: Stele, query: TailQuery, { onFrame, eventsMax = eventsKeptMax }: LiveTailOptions) {
    this.#stele = stele;
    this.#onFrame = onFrame;
    this.events = new EventBuffer({ eventsMax, charactersMax });
    this.query = query;
  }

  get status(): TailStatus {
    return this.#status;
  }

  get place(): string | undefined {
    return this.#place;
  }

  /** The latest reorg that the broker reported. */
  get resync(): Resync | undefined {
    return this.#resync;
  }

  /** Changes whenever the events or the status have changed. */
  readonly version = (): number => this.#version;

  /** Calls listeners at most once a frame, so that a thousand events a second do not cause a thousand renderings. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Starts, or continues after the last event. */
  resume(): void {
    this.#isPausing = false;
    if (this.#connection !== undefined) return;
    this.#connection = new AbortController();
    void this.#run(this.#connection.signal);
  }

  /** Pauses at once. A tail that makes its first connection pauses as soon as it knows its place, or as soon as the connection has failed. */
  pause(): void {
    if (this.#connection === undefined) return;
    this.#isPausing = true;
    if (this.#place !== undefined || this.#status.name === "reconnecting") this.stop();
  }

  /** Ends the connection. */
  stop(): void {
    this.#disconnect("paused");
  }

  /** Ends the tail, because the broker asks for a key or a log-in. After that, another tail starts, which does not continue at this place. */
  end(): void {
    this.#disconnect("ended");
  }

  clear(): void {
    this.events.clear();
    this.#changed();
  }

  async #run(signal: AbortSignal): Promise<void> {
    this.#show({ name: "connecting" });
    const { topic, filter, after, groupId } = this.query;
    const show = (status: TailStatus): void => {
      if (!signal.aborted) this.#show(status);
    };
    const tail = this.#stele.subscribe(topic, {
      after,
      place: this.#place,
      filter,
      groupId,
      signal,
      onConnect: () => show({ name: "live" }),
      onReconnect: ({ reason }: Reconnect) => {
        if (this.#isPausing && !signal.aborted) this.stop();
        show({ name: "reconnecting", reason });
      },
      onResync: (resync) => this.#rollBack(resync, tail.place),
    });
    try {
      await this.#read(tail);
    } catch (error) {
      if (signal.aborted) return;
      this.#connection = undefined;
      this.#show({ name: "failed", error });
    }
  }

  async #read(tail: Tail): Promise<void> {
    await tail.opened();
    this.#place ??= tail.place;
    if (this.#isPausing) return this.stop();
    for await (const event of tail) {
      this.events.add(event, Date.now());
      this.#place = tail.place ?? event.eventId;
      this.#changed();
    }
  }

  #rollBack(resync: Resync, place = resync.after): void {
    const block = blockOfPlace(resync.after);
    if (block !== undefined) this.events.dropAfter(block);
    this.#place = place;
    this.#resync = resync;
    this.#changed();
  }

  #disconnect(name: "paused" | "ended"): void {
    this.#connection?.abort();
    this.#connection = undefined;
    this.#show({ name });
  }

  #show(status: TailStatus): void {
    this.#status = status;
    this.#changed();
  }

  #changed(): void {
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    this.#onFrame(() => {
      this.#isNotifying = false;
      this.#version += 1;
      for (const listener of this.#listeners) listener();
    });
  }
}
