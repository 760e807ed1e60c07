import type { Position } from "./position.ts";

/** How an event ended: its receiver accepted it, it was passed without a delivery, or it was skipped because its attempts failed. */
export type EventEnd = "accepted" | "passed" | "skipped";

/** An event of a window. */
export interface WindowEntry {
  readonly position: Position;
  end: EventEnd | undefined;
}

/** What the oldest events of a window came to, which all ended. */
export interface EndedPrefix<Entry = unknown> {
  /** Position of the newest of them. */
  readonly upTo: Position;
  /** Number of those that were accepted. */
  readonly accepted: number;
  /** Those that were skipped. */
  readonly skipped: readonly Entry[];
}

/**
 * Events that were taken in ascending position and end in any order. The cursor follows {@link takePrefix}, so it never passes an event that has not
 * ended.
 */
export class EventWindow<Entry extends WindowEntry = WindowEntry> {
  #entries: Entry[] = [];
  /** Index of the oldest entry that is still in the window. */
  #start = 0;

  /** Events in the window: those that have not ended, and later ones that have. */
  get size(): number {
    return this.#entries.length - this.#start;
  }

  /** The oldest event, which has not ended unless {@link takePrefix} is due; undefined for none. */
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

  /** Removes the oldest events that have ended; undefined for none. */
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
