import { type EventBatch, isDropped, lastPositionOf } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Position } from "../../domain/position.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import { SharedCalls } from "../../lib/shared-calls.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { Store } from "../../ports/store.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { EngineLimits } from "../limits.ts";
import { HeldBatches } from "./held-batches.ts";

/** Estimated memory, in bytes, of a decoded event without its encoded bytes; also that of a page without batches. */
const overheadBytes = 512;

/** Estimated memory of a batch and its decoded events. */
export function memoryOf({ count, events }: EventBatch): number {
  return count * overheadBytes + events.byteLength;
}

/** Every batch of a topic, or of all topics, with an event after `after` and up to `upTo`. Those that no reader wanted may lack their dropped events. */
export interface Page {
  readonly after: Position;
  readonly upTo: Position;
  readonly batches: readonly EventBatch[];
}

interface KeptPage extends Page {
  readonly key: string;
  readonly bytes: number;
  /** Version of the progress when the page was read. */
  readonly version: number;
  /** Whether the page has batches without their events. */
  readonly hasDropped: boolean;
}

/** Where a feed that is behind continues. */
export interface Place {
  readonly groupId: GroupId;
  readonly progress: IndexProgress;
  /** Undefined for all topics. */
  readonly topic: TopicName | undefined;
  readonly after: Position;
  /** The end of the index. */
  readonly upTo: Position;
  /** Version of the progress when `upTo` was read. */
  readonly version: number;
  /** Whether the feed delivers a topic; dropped events of other topics stay unread. If left out, the feed delivers all topics. */
  readonly isWanted?: (topic: TopicName) => boolean;
}

export interface RecentBatchesOptions {
  readonly store: Pick<Store, "readBatches">;
  /**
   * Fills in events that retention has dropped from the store. May return only the batches before the first one whose events the chain does not give. Left out
   * if the store keeps all events.
   */
  readonly readDropped?: (groupId: GroupId, batches: readonly EventBatch[]) => Promise<readonly EventBatch[]>;
  readonly slices: TimeSlices;
  readonly limits: EngineLimits;
}

/**
 * Caches pages that feeds read from the store while they are behind, at most `recentBytesMax` unless one page alone has more. Feeds that continue at the same
 * place share a read. At most `feedReadsMax` reads of the store are in progress. Reads of the chain, for events that the store has dropped, do not count
 * towards this limit.
 */
export class RecentBatches {
  /** The batches that feeds hold. */
  readonly held: HeldBatches;
  readonly #options: RecentBatchesOptions;
  readonly #semaphore: Semaphore;
  /** Pages by group and topic (`keyOf`), ascending by `after`. */
  readonly #byKey = new Map<string, KeptPage[]>();
  /** All pages, least recently used first. */
  readonly #pages = new Set<KeptPage>();
  /** Reads of the store in progress, by `nameOf`. */
  readonly #loads = new SharedCalls<string, KeptPage | undefined>();
  /** Reads of the chain in progress, by `nameOf` and the batches that are read. */
  readonly #fills = new SharedCalls<string, KeptPage | undefined>();
  #bytes = 0;

  constructor(options: RecentBatchesOptions) {
    this.#options = options;
    this.held = new HeldBatches(options.limits.heldBytesMax);
    this.#semaphore = new Semaphore(options.limits.feedReadsMax);
  }

  /** The page that contains a place; undefined if the page is not in memory. */
  find(place: Place): Page | undefined {
    return this.#find(place);
  }

  #find(place: Place): KeptPage | undefined {
    const { groupId, topic, after, progress } = place;
    const page = lastUpTo(this.#byKey.get(keyOf(groupId, topic)) ?? [], after);
    if (page === undefined || page.upTo <= after) return undefined;
    if (page.version !== progress.version) return this.#drop(page);
    if (page.hasDropped && missingOf(page, place).length > 0) return undefined;
    this.#pages.delete(page);
    this.#pages.add(page);
    return page;
  }

  /** Reads the page of a place from the store, or finds it in memory; undefined if `signal` aborts first, or the index rolls back meanwhile. */
  async read(place: Place, signal: CancelSignal): Promise<Page | undefined> {
    const page = await this.#semaphore.run(async () => {
      const found = this.#find(place) ?? (await this.#loads.run(nameOf(place), () => this.#load(place)));
      await this.#options.slices.pause();
      return found;
    }, signal);
    if (page?.hasDropped !== true) return page;
    const missing = missingOf(page, place);
    if (missing.length === 0) {
      if (!this.#pages.has(page)) this.#keep(page);
      return page;
    }
    const name = `${nameOf(place)} ${missing.map(({ firstPosition }) => firstPosition).join(" ")}`;
    const filled = this.#fills.run(name, () => this.#fill(page, { place, missing }));
    return untilAborted(filled, signal);
  }

  async #load({ groupId, topic, after, upTo, version, progress }: Place): Promise<KeptPage | undefined> {
    const { store, limits } = this.#options;
    const { readBatchesMax: batchesMax, readBytesMax: bytesMax } = limits;
    // The index may have rolled back while the read waited for its turn: `upTo` may be gone.
    if (version !== progress.version) return undefined;
    const batches = await store.readBatches(groupId, { after, upTo, topic, batchesMax, bytesMax });
    if (version !== progress.version) return undefined;
    const page = {
      after,
      upTo: endOf(batches) ?? upTo,
      batches,
      key: keyOf(groupId, topic),
      bytes: bytesOf(batches),
      version,
      hasDropped: batches.some(isDropped),
    };
    if (!page.hasDropped) this.#keep(page);
    return page;
  }

  /** Fills in the missing batches of a page. The page ends before the first that the chain does not give. */
  async #fill(
    page: KeptPage,
    { place, missing }: { readonly place: Place; readonly missing: readonly EventBatch[] },
  ): Promise<KeptPage | undefined> {
    const given = (await this.#options.readDropped?.(place.groupId, missing)) ?? missing;
    if (place.version !== place.progress.version) return undefined;
    const filled = new Map(missing.map((batch, index) => [batch, given[index]]));
    const [end] = missing.slice(given.length);
    const whole = end === undefined ? page.batches : page.batches.slice(0, page.batches.indexOf(end));
    const batches = whole.map((batch) => filled.get(batch) ?? batch);
    const upTo = end === undefined ? page.upTo : (endOf(batches) ?? page.upTo);
    const kept = { ...page, upTo, batches, bytes: bytesOf(batches), hasDropped: batches.some(isDropped) };
    this.#keep(kept);
    return kept;
  }

  #keep(page: KeptPage): void {
    const { limits } = this.#options;
    const pages = this.#byKey.get(page.key) ?? [];
    this.#byKey.set(page.key, pages);
    pages.splice(indexAfter(pages, page.after), 0, page);
    this.#pages.add(page);
    this.#bytes += page.bytes;
    for (const oldest of this.#pages) {
      if (this.#bytes <= limits.recentBytesMax || oldest === page) return;
      this.#drop(oldest);
    }
  }

  #drop(page: KeptPage): undefined {
    const pages = this.#byKey.get(page.key);
    pages?.splice(pages.indexOf(page), 1);
    if (pages?.length === 0) this.#byKey.delete(page.key);
    this.#pages.delete(page);
    this.#bytes -= page.bytes;
  }
}

/** The batches that the feed needs from the page, and whose events were dropped. */
function missingOf({ batches }: Page, { after, isWanted }: Place): readonly EventBatch[] {
  return batches.filter(
    (batch) => isDropped(batch) && lastPositionOf(batch) > after && (isWanted === undefined || isWanted(batch.topic)),
  );
}

function nameOf({ groupId, topic, after, version }: Place): string {
  return `${version} ${after} ${keyOf(groupId, topic)}`;
}

function keyOf(groupId: GroupId, topic: TopicName | undefined): string {
  return topic === undefined ? groupId : `${groupId} ${topic}`; // No group has a space in its name.
}

/** Position of the last event of the last batch. */
function endOf(batches: readonly EventBatch[]): Position | undefined {
  const last = batches.at(-1);
  return last && lastPositionOf(last);
}

function bytesOf(batches: readonly EventBatch[]): number {
  return batches.reduce((sum, batch) => sum + memoryOf(batch), overheadBytes);
}

/** The last page that begins at `after` or before. */
function lastUpTo(pages: readonly KeptPage[], after: Position): KeptPage | undefined {
  return pages[indexAfter(pages, after) - 1];
}

/** How many pages begin at `after` or before. */
function indexAfter(pages: readonly KeptPage[], after: Position): number {
  let [low, high] = [0, pages.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const page = pages[middle];
    if (page !== undefined && page.after <= after) low = middle + 1;
    else high = middle;
  }
  return low;
}
