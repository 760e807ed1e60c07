import type { ReceivedEvent } from "@stele/client";
import { parseEventId } from "../lib/event-id.ts";

/** An event with the time at which this page got it. */
export interface TailedEvent {
  readonly event: ReceivedEvent;
  readonly receivedAt: number;
  /** Counts all events of the tail, so that a row keeps its identity when the buffer drops older ones. */
  readonly number: number;
}

export interface BufferBounds {
  readonly eventsMax: number;
  /** Characters of contents, in Base64, and of extensions. */
  readonly charactersMax: number;
}

/** For this many kept events, one dropped event may stay in the array. So dropped events take little memory. */
const spareDivisor = 4;

/** The newest events of a tail, within bounds: a new event displaces the oldest. */
export class EventBuffer {
  readonly #bounds: BufferBounds;
  #events: TailedEvent[] = [];
  /** Index of the oldest event that is kept. Removing the head of an array would be slow. */
  #start = 0;
  #characters = 0;
  #added = 0;

  constructor(bounds: BufferBounds) {
    this.#bounds = bounds;
  }

  get length(): number {
    return this.#events.length - this.#start;
  }

  /** The event at an index; the oldest event has index 0. */
  at(index: number): TailedEvent | undefined {
    return index < 0 ? undefined : this.#events[this.#start + index];
  }

  find(eventId: string): TailedEvent | undefined {
    return this.#events.findLast(({ event }, index) => index >= this.#start && event.eventId === eventId);
  }

  add(event: ReceivedEvent, receivedAt: number): void {
    this.#events.push({ event, receivedAt, number: this.#added });
    this.#added += 1;
    this.#characters += charactersOf(event);
    while (this.length > this.#bounds.eventsMax || (this.#characters > this.#bounds.charactersMax && this.length > 1))
      this.#dropOldest();
    if (this.#start * spareDivisor > this.length) this.#compact();
  }

  /** Drops the events of blocks after `block`, which a reorg removed. */
  dropAfter(block: number): void {
    this.#compact();
    this.#events = this.#events.filter(({ event }) => (parseEventId(event.eventId)?.block ?? 0) <= block);
    this.#characters = this.#events.reduce((sum, { event }) => sum + charactersOf(event), 0);
  }

  clear(): void {
    this.#events = [];
    this.#start = 0;
    this.#characters = 0;
  }

  #dropOldest(): void {
    const oldest = this.at(0);
    if (oldest !== undefined) this.#characters -= charactersOf(oldest.event);
    this.#start += 1;
  }

  #compact(): void {
    this.#events = this.#events.slice(this.#start);
    this.#start = 0;
  }
}

function charactersOf({ content, extensions }: ReceivedEvent): number {
  return Object.entries(extensions).reduce((sum, [key, value]) => sum + key.length + value.length, content.length);
}
