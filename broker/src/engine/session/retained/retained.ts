import type { Event } from "../../../domain/event.ts";
import type { GroupId } from "../../../domain/group-id.ts";
import type { Position } from "../../../domain/position.ts";
import { isMarkedRetained } from "../../../domain/session-filter.ts";
import { isPattern, matchesFilter, toLevels, type TopicFilter } from "../../../domain/topic-filter.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import type { CancelSignal } from "../../../lib/cancellation.ts";
import type { TimeSlices } from "../../../lib/time-slices.ts";
import type { RetainedEvent } from "../../../ports/store.ts";
import type { IndexProgress } from "../../index-progress.ts";
import type { RetainedReads } from "./retained-reads.ts";

/** Maximum number of places of retained events per read of the store, about 200 bytes each. */
const placesReadMax = 64;

export interface RetainedParts {
  readonly groupId: GroupId;
  readonly progress: IndexProgress;
  readonly retainedReads: RetainedReads;
  readonly slices: TimeSlices;
  readonly extensionPrefix: string;
  /** Whether events of a topic may reach the session's client. */
  readonly mayReceive: (topic: TopicName) => boolean;
}

/** A retained event for a subscription. */
export interface Retained {
  readonly event: Event;
  readonly filter: TopicFilter;
}

/** The retained events that one filter has not got yet. */
export interface PendingRetained {
  readonly filter: TopicFilter;
  /** Position of the newest retained event to deliver; later events reach the subscription as they are published. */
  readonly upTo: Position;
  /** The last topic whose retained event was delivered or skipped; undefined before the first. */
  readonly given: TopicName | undefined;
}

/** Progress with the retained events of one filter. */
interface Scan {
  readonly filter: TopicFilter;
  upTo: Position;
  given: TopicName | undefined;
  /** The topic up to which places were read. */
  after: TopicName | undefined;
  places: RetainedEvent[];
  isRead: boolean;
  /** The last place that had no event. */
  vanished: Position | undefined;
}

/**
 * The retained events that the filters of one session have not got yet, filter after filter, in the order of their topics. The events stay in the store
 * until they are delivered; memory holds only a page of their places.
 */
export class RetainedEvents {
  readonly #parts: RetainedParts;
  #scans: Scan[] = [];

  constructor(parts: RetainedParts) {
    this.#parts = parts;
  }

  get isEmpty(): boolean {
    return this.#scans.length === 0;
  }

  /** Adds the retained events of a filter up to a position. If some are still pending, the filter starts over, so that a client cannot pile up work. */
  add(filter: TopicFilter, upTo: Position): void {
    this.resume({ filter, upTo, given: undefined });
  }

  /** Adds the rest of the retained events of a filter. */
  resume({ filter, upTo, given }: PendingRetained): void {
    this.remove(filter);
    this.#scans.push({ filter, upTo, given, after: given, places: [], isRead: false, vanished: undefined });
  }

  get pending(): readonly PendingRetained[] {
    return this.#scans.map(({ filter, upTo, given }) => ({ filter, upTo, given }));
  }

  remove(filter: TopicFilter): void {
    this.#scans = this.#scans.filter((scan) => scan.filter !== filter);
  }

  /** Call it when a reorg has removed the events after `to`. Earlier events may be retained again, so the broker reads places again. */
  rollBack(to: Position): void {
    for (const scan of this.#scans) {
      if (scan.upTo > to) scan.upTo = to;
      restart(scan);
    }
  }

  /** The next event. It stays the same until {@link pass} is called; undefined if there is none or `signal` aborts. @throws what the store throws. */
  async next(signal: CancelSignal): Promise<Retained | undefined> {
    for (let [scan] = this.#scans; scan !== undefined && !signal.aborted; [scan] = this.#scans) {
      const [place] = scan.places;
      if (place !== undefined) {
        const event = await this.#find(place, signal);
        if (signal.aborted) return undefined;
        if (event !== undefined && scan.places[0] === place && this.#scans[0] === scan) {
          return { event, filter: scan.filter };
        }
        if (event === undefined) passVanished(scan, place);
      } else if (scan.isRead) this.remove(scan.filter);
      else await this.#read(scan, signal);
    }
    return undefined;
  }

  /** Call it when the event has been delivered. */
  pass({ event, filter }: Retained): void {
    const scan = this.#scans.find((one) => one.filter === filter);
    const [place] = scan?.places ?? [];
    if (scan !== undefined && place?.position === event.position) removeFirst(scan, place);
    if (scan?.isRead === true && scan.places.length === 0) this.remove(filter);
  }

  /** The retained event at a place; undefined if a reorg removed it, if the client may no longer receive it, or if `signal` aborts. */
  async #find(place: RetainedEvent, signal: CancelSignal): Promise<Event | undefined> {
    if (!this.#parts.mayReceive(place.topic)) return undefined;
    const event = await this.#parts.retainedReads.find(this.#parts, place, signal);
    return event !== undefined && isMarkedRetained(event, this.#parts.extensionPrefix) ? event : undefined;
  }

  async #read(scan: Scan, signal: CancelSignal): Promise<void> {
    const { retainedReads, groupId, mayReceive, slices } = this.#parts;
    const { filter, after } = scan;
    const isExact = !isPattern(filter);
    const limit = isExact ? 1 : placesReadMax;
    const page = await retainedReads.list(groupId, { prefix: prefixOf(filter), after, limit }, signal);
    if (page === undefined || signal.aborted) return;
    scan.after = page.at(-1)?.topic;
    scan.isRead = isExact || page.length < limit;
    scan.places = page.filter(
      ({ topic, position }) => position <= scan.upTo && matchesFilter(filter, topic) && mayReceive(topic),
    );
    await slices.pause(); // A filter that matches few of many topics reads page after page.
  }
}

function restart(scan: Scan): void {
  Object.assign(scan, { after: scan.given, places: [], isRead: false });
}

/**
 * Reads the places again if another node has rolled the index back, and this node has yet to follow: the topic may retain an earlier event now. Skips a place
 * that has no event even then.
 */
function passVanished(scan: Scan, place: RetainedEvent): void {
  if (scan.places[0] !== place) return;
  if (scan.vanished === place.position) return removeFirst(scan, place);
  scan.vanished = place.position;
  restart(scan);
}

function removeFirst(scan: Scan, place: RetainedEvent): void {
  if (scan.places[0] !== place) return;
  scan.places.shift();
  scan.given = place.topic;
}

/** The common prefix of all topic names that a filter matches. */
function prefixOf(filter: TopicFilter): string {
  const levels = toLevels(filter);
  const wildcard = levels.findIndex((level) => isPattern(level));
  if (wildcard < 0) return filter;
  const literal = levels.slice(0, wildcard);
  // "a/#" matches "a" too.
  return levels[wildcard] === "#" || wildcard === 0 ? literal.join("/") : `${literal.join("/")}/`;
}
