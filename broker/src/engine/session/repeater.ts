import type { DeliveryWindow, InFlight } from "../../domain/delivery-window.ts";
import type { Event } from "../../domain/event.ts";
import type { Position } from "../../domain/position.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import { type Connection, findRepeat, hasRoom } from "./connection.ts";
import type { DeliverySender } from "./delivery-sender.ts";
import type { RetainedParts } from "./retained/retained.ts";
import { stuck, type Waiting } from "./waiting.ts";

export interface RepeaterParts {
  readonly reads: Pick<RetainedParts, "groupId" | "progress" | "retainedReads" | "mayReceive">;
  readonly window: DeliveryWindow;
  readonly waiting: Waiting;
  readonly sender: DeliverySender;
  readonly filtersOf: (entry: InFlight) => readonly SessionFilter[];
  /**
   * Called if a reorg removed the event, or if the client may no longer receive it. With QoS 2, the client may keep the ticket until the release, and would
   * treat a new event with that ticket as a repeat.
   */
  readonly onVanished: (entry: InFlight) => void;
}

/** Delivers events of one session's window again. */
export class Repeater {
  readonly #parts: RepeaterParts;

  constructor(parts: RepeaterParts) {
    this.#parts = parts;
  }

  /** Gives up the events in flight that the client may no longer receive: they would take up room for ever. Call it when a peer has connected. */
  giveUpDenied(): void {
    const { reads, window, onVanished } = this.#parts;
    for (const entry of window.entries) {
      if (entry.state !== "received" && !reads.mayReceive(entry.topic)) onVanished(entry);
    }
  }

  /** Delivers an event of the stream again, unless the peer has it. */
  giveOfStream(event: Event, connection: Connection, filters: readonly SessionFilter[]): void {
    const { window, sender } = this.#parts;
    const entry = findRepeat(connection, window, event.position);
    connection.repeats.delete(event.position);
    if (entry !== undefined) sender.again(event, connection, { entry, filters });
  }

  /**
   * The feed passes events that the client may no longer receive. Gives up those in flight up to a position: they would take up room until the next
   * connection. Rights may change for thousands of sessions at once, so each session looks at its own events once, as its feed passes them.
   */
  giveUpPassed(connection: Connection, upTo: Position): void {
    if (connection.repeats.size === 0) return; // The usual case: this runs for nearly every event.
    const { reads, window, onVanished } = this.#parts;
    for (const { position, topic } of connection.repeats.values()) {
      if (position > upTo) return;
      const entry = findRepeat(connection, window, position);
      connection.repeats.delete(position);
      if (entry !== undefined && !reads.mayReceive(topic)) onVanished(entry);
    }
  }

  /** Reads an event from the store, and delivers it again. Returns false if the signal aborted before the delivery. */
  async give(
    entry: InFlight,
    { connection, signal }: { readonly connection: Connection; readonly signal: CancelSignal },
  ): Promise<boolean> {
    const { reads, window, waiting, sender, filtersOf, onVanished } = this.#parts;
    const { retainedReads, mayReceive } = reads;
    const find = (): Promise<Event | undefined> => retainedReads.find(reads, entry, signal);
    const event = await waiting.untilDone({ what: stuck.repeated, signal }, find);
    while (!signal.aborted && !hasRoom(connection)) await waiting.woken();
    if (signal.aborted) return false;
    if (window.find(entry.ticket) === undefined) return true;
    if (event === undefined || !mayReceive(entry.topic)) onVanished(entry);
    else sender.again(event, connection, { entry, filters: filtersOf(entry) });
    return true;
  }
}
