import type { Position } from "./position.ts";

/** How an event ended. `accepted`: the receiver accepted it. `passed`: the subscription may not read it. `skipped`: its attempts failed. */
export type EventEnd = "accepted" | "passed" | "skipped";

/** An event of a window. */
export interface WindowEntry {
  readonly position: Position;
  end: EventEnd | undefined;
}

/** The oldest events of a window, all of which have ended. */
export interface EndedPrefix<Entry = unknown> {
  /** Position of the newest of these events. */
  readonly upTo: Position;
  /** Number of accepted events. */
  readonly accepted: number;
  /** The skipped events. */
  readonly skipped: readonly Entry[];
}

/**
 * Events that are added in ascending position and end in any order. The cursor follows {@link takePrefix}, so it never passes an event that has not
 * ended.
 */
export class EventWindow<Entry extends WindowEntry = WindowEntry> {
  #entries: Entry[] = [];
  /** Index of the oldest entry that is still in the window. */
  #start = 0;

  /** Number of events in the window. After {@link takePrefix}: those that have not ended, and later ones that have. */
  get size(): number {
    return this.#entries.length - this.#start;
  }

  /** The oldest event; undefined for none. After {@link takePrefix} it is one that has not ended. */
  get oldest(): Entry | undefined {
    return this.#entries[this.#start];
  }

  /** In ascending position. */
  entries(): readonly Entry[] {
    return this.#entries.slice(this.#start);
  }

  add(entry: Entry): void {
    this.#entries.push(entry);
  }

  /** Removes and summarises the events before the first one that has not ended; undefined for none. */
  takePrefix(): EndedPrefix<Entry> | undefined {
    let [upTo, accepted]: [Position | undefined, number] = [undefined, 0];
    const skipped: Entry[] = [];
    for (let entry = this.oldest; entry?.end !== undefined; entry = this.oldest) {
      upTo = entry.position;
      if (entry.end === "accepted") accepted += 1;
      if (entry.end === "skipped") skipped.push(entry);
      this.#start += 1;
    }
    this.#shrink();
    return upTo === undefined ? undefined : { upTo, accepted, skipped };
  }

  /** Moves the entries only when at least half of the array is free. */
  #shrink(): void {
    if (this.#start * 2 < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#start);
    this.#start = 0;
  }
}
