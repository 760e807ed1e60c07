import type { GroupId } from "../domain/group-id.ts";
import type { Position } from "../domain/position.ts";
import type { TopicFilter } from "../domain/topic-filter.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { SessionKey, ShareId } from "./session-store.ts";

/** A stream of events with several members. It begins with its first member, and ends with its last one. */
export interface StoredShare {
  readonly id: ShareId;
  /** Fencing token: every take, return, rollback and rebuild of a damaged row increases it. */
  readonly epoch: number;
  /** Every event up to this position was given to a member, or skipped. */
  readonly cursor: Position;
}

/** An event of a share, by its place. */
export interface SharePlace {
  readonly topic: TopicName;
  readonly position: Position;
}

/** An event that a share gives to a member, which must settle it. */
export interface ShareGift extends SharePlace {
  readonly to: SessionKey;
}

/** Which of a share's returned events to list. */
export interface ReturnedPage {
  readonly after: Position;
  readonly atMost: number;
}

/** Events that a share assigns to its members. */
export interface ShareTake {
  readonly id: ShareId;
  readonly epoch: number;
  readonly cursor: Position;
  readonly gifts: readonly ShareGift[];
  /** Returned events that a reorg has removed. */
  readonly dropped: readonly Position[];
}

/**
 * Shares, whose members are sessions of any node. Exactly one session holds an event that was given and is not acknowledged. When the connection of
 * that session ends, the event returns to the share, and another member can take it. A share begins and ends with the filters
 * `$share/…` of sessions, in the same transactions.
 */
export interface ShareStore {
  /**
   * The share of a filter; undefined if no session is a member. Reports a damaged row, and begins the share again for its members: no event is lost,
   * but members may get acknowledged events again.
   */
  findShare(groupId: GroupId, filter: TopicFilter): Promise<StoredShare | undefined>;
  /**
   * For each share, the position up to which every event was acknowledged or skipped. If the row of the oldest unacknowledged event is damaged, the share's
   * cursor instead. Leaves out shares without members, and damaged rows of shares.
   */
  findShareCursors(groupId: GroupId, filters: readonly TopicFilter[]): Promise<ReadonlyMap<TopicFilter, Position>>;
  /** The first events after `after` that were not acknowledged by members whose connection has ended, in ascending order. */
  listReturned(id: ShareId, page: ReturnedPage): Promise<readonly SharePlace[]>;
  /** The given shares that have returned events. */
  findReturning(ids: readonly ShareId[]): Promise<readonly ShareId[]>;
  /**
   * Moves the cursor and gives events to members, under the next epoch. `refused`: the share has another epoch, or is gone. `member-refused`: a
   * member has another epoch; nothing has changed.
   */
  takeShared(take: ShareTake): Promise<"taken" | "refused" | "member-refused">;
  /** Undoes a take whose outcome is unknown. The share gets the next epoch. A new epoch of a member's session does not prevent this. */
  returnShared(take: Pick<ShareTake, "id" | "gifts">): Promise<void>;
}
