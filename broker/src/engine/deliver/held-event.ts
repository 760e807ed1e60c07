import type { DeadLetter } from "../../domain/dead-letter.ts";
import type { Event } from "../../domain/event.ts";
import type { EventEnd, WindowEntry } from "../../domain/event-window.ts";
import type { Failure } from "../../domain/subscription.ts";
import type { LaneItem } from "./lanes.ts";

/** An event that a worker has taken from its feed and that the cursor has not passed. */
export interface HeldEvent extends WindowEntry, LaneItem {
  /** Without its content once it has ended. */
  event: Event;
  failure: Failure;
  /** The dead letter of the event, if it is skipped. */
  letter: DeadLetter | undefined;
}

const noBytes = new Uint8Array();

/**
 * Marks an event as ended. Only its place and topic still count: behind an event that fails, a thousand ended events may wait for the cursor, each with its
 * batch and the body that was sent.
 */
export function endHeld(held: HeldEvent, end: EventEnd): void {
  const { topic, sequence, blockNumber, position } = held.event;
  held.end = end;
  held.event = { topic, sequence, blockNumber, position, content: noBytes, extensions: [] };
}
