import { type EventId, formatEventId, parseEventId, publishDigest, topicDigest } from "@stele/wire";
import { type Event, lastPositionOf } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import { endOfBlock, minOf, type Position } from "../../domain/position.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { unaborted } from "../../lib/cancellation.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import type { PublishKeyRow } from "../../ports/publish-keys.ts";
import type { Store } from "../../ports/store.ts";
import { eventsOf } from "../batch-events.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { EngineLimits } from "../limits.ts";
import { toIdentity, toSessionIdentity } from "./publish-identity.ts";
import { isTokenKey, prefixOf } from "./token-key.ts";

/** Maximum number of searches for tokens at once in one group; further ones wait. */
const searchesAtOnceMax = 2;

/** Maximum number of publishes whose block is remembered, about 150 bytes each. For others, a repeat reads the topic from the position of the first request. */
const blocksKnownMax = 20_000;

export interface TokenSearchOptions {
  readonly groupId: GroupId;
  readonly store: Pick<Store, "readBatches">;
  readonly progress: IndexProgress;
  readonly limits: Pick<EngineLimits, "readBatchesMax" | "readBytesMax">;
}

interface Wanted {
  readonly row: PublishKeyRow;
  readonly after: Position;
  readonly signal: AbortSignal;
  readonly found: Deferred<EventId | undefined>;
}

interface SearchRange {
  readonly topic: TopicName;
  readonly wanted: readonly Wanted[];
  /** Position at which the search ends; the end of the index if left out. */
  readonly upTo?: Position;
}

/** Finds the events of publishes with a key in the index, by token. Searches of a whole topic share their reads. */
export class TokenSearch {
  readonly #options: TokenSearchOptions;
  readonly #semaphore = new Semaphore(searchesAtOnceMax);
  readonly #waiting = new Map<TopicName, Wanted[]>();
  /** Blocks of the events that were last published or found, by token. */
  readonly #blocks = new BoundedMap<string, number>(blocksKnownMax);

  constructor(options: TokenSearchOptions) {
    this.#options = options;
  }

  /**
   * Finds the event of a row after a position of its topic. Undefined if the index at the time of the call does not contain it, or if `signal` aborts first.
   * @throws as the store does.
   */
  async find(row: PublishKeyRow, after: Position, signal: AbortSignal): Promise<EventId | undefined> {
    const known = await this.#findKnown(row, signal);
    if (known !== undefined) return known;
    const wanted = { row, after, signal, found: createDeferred<EventId | undefined>() };
    const others = this.#waiting.get(row.topic);
    if (others === undefined) {
      this.#waiting.set(row.topic, [wanted]);
      void this.#serve(row.topic);
    } else others.push(wanted);
    return wanted.found.promise;
  }

  /** Remembers the block of a token's event: a repeat looks there first. */
  note(token: string, eventId: EventId): void {
    this.#blocks.set(token, parseEventId(eventId).blockNumber);
  }

  /** The event, if it is in the block that {@link note} recorded; a reorg may have moved it. */
  async #findKnown(row: PublishKeyRow, signal: AbortSignal): Promise<EventId | undefined> {
    const block = this.#blocks.get(row.token);
    if (block === undefined) return undefined;
    const after = endOfBlock(Math.max(0, block - 1));
    const wanted = { row, after, signal, found: createDeferred<EventId | undefined>() };
    const range = { topic: row.topic, wanted: [wanted], upTo: endOfBlock(block) };
    const { promise } = wanted.found;
    promise.catch(() => {}); // Nobody waits for it if `signal` aborts during the read. A rejection without a handler would end the process.
    await this.#semaphore.run(() => this.#searchFor(range), signal);
    return signal.aborted ? undefined : promise;
  }

  /** Never rejects. */
  async #serve(topic: TopicName): Promise<void> {
    for (let wanted = this.#waiting.get(topic); wanted !== undefined; wanted = this.#waiting.get(topic)) {
      const all = wanted;
      await this.#semaphore.run(() => this.#searchFor({ topic, wanted: all.splice(0) }), unaborted);
      if (all.length === 0) this.#waiting.delete(topic);
    }
  }

  async #searchFor(range: SearchRange): Promise<void> {
    const { wanted } = range;
    try {
      await this.#search(range);
      for (const { found } of wanted) found.resolve(undefined); // Those that found their event are resolved already.
    } catch (error) {
      for (const { found } of wanted) found.reject(error);
    }
  }

  async #search({ topic, wanted, upTo: end }: SearchRange): Promise<void> {
    const { store, groupId, progress, limits } = this.#options;
    if (progress.blockNumber < 0) return;
    const { readBatchesMax: batchesMax, readBytesMax: bytesMax } = limits;
    const upTo = minOf(endOfBlock(progress.blockNumber), end ?? endOfBlock(progress.blockNumber));
    const open = new Map(wanted.map((one) => [one.row.token, one]));
    let after = Math.min(...wanted.map((one) => one.after)) as Position; // The least of several positions is a position.
    while (open.size > 0 && after < upTo) {
      const batches = await store.readBatches(groupId, { after, upTo, topic, batchesMax, bytesMax });
      const last = batches.at(-1);
      if (last === undefined) return;
      for (const batch of batches) for (const event of eventsOf(batch)) this.#look(event, open);
      after = lastPositionOf(last);
      for (const [token, { signal }] of open) if (signal.aborted) open.delete(token);
    }
  }

  #look(event: Event, open: Map<string, Wanted>): void {
    for (const [key, value] of event.extensions) {
      const wanted = isTokenKey(key) ? open.get(value) : undefined;
      if (wanted === undefined || event.position <= wanted.after || !isEventOf(wanted.row, event, key)) continue;
      open.delete(value);
      const { topic, sequence, blockNumber } = event;
      const eventId = formatEventId({ topicDigest: topicDigest(topic), sequence, blockNumber });
      this.note(value, eventId);
      wanted.found.resolve(eventId);
    }
  }
}

/**
 * Whether the event, with the row's token under `tokenKey`, has the row's content. Any writer of the topic can copy a token, but only after the event. So the
 * first event with the token and the same content counts.
 */
function isEventOf({ digest }: PublishKeyRow, event: Event, tokenKey: string): boolean {
  const prefix = prefixOf(tokenKey); // The setting may have changed since the event was published.
  const extensions = event.extensions.filter(([key]) => key !== tokenKey);
  // A session's publish is recognized by fewer extensions.
  const identities = [toIdentity, toSessionIdentity].map((toOwn) => toOwn(extensions, prefix));
  return identities.some((one) => publishDigest({ ...event, extensions: one }) === digest);
}
