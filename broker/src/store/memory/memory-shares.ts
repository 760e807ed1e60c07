import type { GroupId } from "../../domain/group-id.ts";
import { before, minOf, type Position } from "../../domain/position.ts";
import { isShared } from "../../domain/shared-filter.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { createLoopSlices } from "../../lib/system/loop-slices.ts";
import type { SessionId, SessionKey, SettledEvent, ShareId, StoredFilter } from "../../ports/session-store.ts";
import type {
  ReturnedPage,
  ShareGift,
  SharePlace,
  ShareStore,
  ShareTake,
  StoredShare,
} from "../../ports/share-store.ts";

interface TakenGift extends ShareGift {
  /** The epoch that the session had when the share gave it the event. */
  readonly givenEpoch: number;
}

interface KeptShare extends StoredShare {
  readonly groupId: GroupId;
  readonly filter: TopicFilter;
  /** Events given to members and not settled, in ascending order: a take adds events after the cursor, or replaces one in its place. */
  readonly events: Map<Position, TakenGift>;
}

export interface MemorySharesOptions {
  /** The current epoch of a session; undefined if the session does not exist. */
  readonly epochOf: (id: SessionId) => number | undefined;
  readonly isMember: (groupId: GroupId, filter: TopicFilter) => boolean;
}

/** Maximum number of events that a read visits before it reads the clock, which takes as long as a visit. */
const visitedAtOnceMax = 1_000;

/** Shares in memory. Each call makes all its changes in one turn of the event loop. */
export class MemoryShares implements ShareStore {
  readonly #options: MemorySharesOptions;
  readonly #kept = new Map<ShareId, KeptShare>();

  constructor(options: MemorySharesOptions) {
    this.#options = options;
  }

  async findShare(groupId: GroupId, filter: TopicFilter): Promise<StoredShare | undefined> {
    const kept = this.#find(groupId, filter);
    return kept && { id: kept.id, epoch: kept.epoch, cursor: kept.cursor };
  }

  async findShareCursors(
    groupId: GroupId,
    filters: readonly TopicFilter[],
  ): Promise<ReadonlyMap<TopicFilter, Position>> {
    const wanted = new Set(filters);
    const found = [...this.#kept.values()].filter((kept) => kept.groupId === groupId && wanted.has(kept.filter));
    return new Map(
      found.map(({ filter, cursor, events }) => [filter, [...events.keys()].map(before).reduce(minOf, cursor)]),
    );
  }

  async listReturned(id: ShareId, { after, atMost }: ReturnedPage): Promise<readonly SharePlace[]> {
    const places: SharePlace[] = [];
    await this.#visit([id], (gift) => {
      const { topic, position } = gift;
      if (position > after && this.#isReturned(gift)) places.push({ topic, position });
      return places.length === atMost;
    });
    return places;
  }

  async findReturning(ids: readonly ShareId[]): Promise<readonly ShareId[]> {
    const found: ShareId[] = [];
    await this.#visit(ids, (gift, id) => this.#isReturned(gift) && found.push(id) > 0);
    return found;
  }

  async takeShared({ id, epoch, cursor, gifts, dropped }: ShareTake): Promise<"taken" | "refused" | "member-refused"> {
    if (gifts.some((gift) => this.#isReturned(gift))) return "member-refused";
    const kept = this.#kept.get(id);
    if (kept?.epoch !== epoch) return "refused";
    for (const position of dropped) kept.events.delete(position);
    for (const gift of gifts) kept.events.set(gift.position, { ...gift, givenEpoch: gift.to.epoch });
    this.#kept.set(id, { ...kept, cursor, epoch: epoch + 1 });
    return "taken";
  }

  async returnShared({ id, gifts }: Pick<ShareTake, "id" | "gifts">): Promise<void> {
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    this.#kept.set(id, { ...kept, epoch: kept.epoch + 1 });
    for (const { position, to } of gifts) {
      const known = kept.events.get(position);
      if (known?.to.id !== to.id || known.givenEpoch !== to.epoch) continue; // `known.to.epoch` may have changed since.
      kept.events.set(position, { ...known, to: { ...to, epoch: -1 } }); // No session has this epoch.
    }
  }

  join(groupId: GroupId, filters: readonly StoredFilter[]): void {
    for (const { filter, id, startsAfter } of filters) {
      if (!isShared(filter) || this.#find(groupId, filter) !== undefined) continue;
      const shareId = id as string as ShareId; // Both are UUIDs.
      this.#kept.set(shareId, { id: shareId, groupId, filter, epoch: 0, cursor: startsAfter, events: new Map() });
    }
  }

  /** Removes the shares of these filters that have no members left. */
  leave(groupId: GroupId, filters: readonly TopicFilter[]): void {
    for (const filter of filters) {
      const kept = this.#find(groupId, filter);
      if (kept !== undefined && !this.#options.isMember(groupId, filter)) this.#kept.delete(kept.id);
    }
  }

  /** Removes events that a session has settled. The caller has checked the session's epoch. */
  settle(id: SessionId, settled: readonly SettledEvent[]): void {
    for (const { share, position, givenEpoch } of settled) {
      const events = this.#kept.get(share)?.events;
      const gift = events?.get(position);
      if (gift?.to.id === id && gift.givenEpoch === givenEpoch) events?.delete(position);
    }
  }

  /** Gives the events of a session its new epoch, so that they do not count as returned. */
  keep(former: SessionKey, epoch: number): void {
    for (const { events } of this.#kept.values()) {
      for (const [position, gift] of events) {
        if (gift.to.id === former.id && gift.to.epoch === former.epoch)
          events.set(position, { ...gift, to: { id: former.id, epoch } });
      }
    }
  }

  cutBack(groupId: GroupId, end: Position): void {
    for (const kept of this.#kept.values()) {
      if (kept.groupId !== groupId) continue;
      for (const position of kept.events.keys()) if (position > end) kept.events.delete(position);
      this.#kept.set(kept.id, { ...kept, cursor: minOf(kept.cursor, end), epoch: kept.epoch + 1 });
    }
  }

  /** Visits the unacknowledged events of each share until `visit` returns true. In slices: the members of one share, or of thousands, may have a million. */
  async #visit(ids: readonly ShareId[], visit: (gift: TakenGift, id: ShareId) => boolean): Promise<void> {
    const slices = createLoopSlices();
    let count = 0;
    for (const id of ids) {
      for (const gift of this.#kept.get(id)?.events.values() ?? []) {
        count += 1;
        if (count % visitedAtOnceMax === 0) await slices.pause();
        if (visit(gift, id)) break;
      }
    }
  }

  #find(groupId: GroupId, filter: TopicFilter): KeptShare | undefined {
    return [...this.#kept.values()].find((kept) => kept.groupId === groupId && kept.filter === filter);
  }

  #isReturned({ to }: ShareGift): boolean {
    return this.#options.epochOf(to.id) !== to.epoch;
  }
}
