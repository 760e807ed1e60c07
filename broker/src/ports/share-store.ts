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
  /** Every event up to here was given to a member, or skipped. */
  readonly cursor: Position;
}

/** An event of a share, by its place. */
export interface SharePlace {
  readonly topic: TopicName;
  readonly position: Position;
}

/** An event for a member, which must acknowledge it. */
export interface ShareGift extends SharePlace {
  readonly to: SessionKey;
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
 * Shares that sessions of any node are members of. Exactly one session holds an event that was given and is not acknowledged. When its connection
 * ends, in whatever way, the event is returned, and another member can take it. A share begins and ends with the filters `$share/…` of sessions,
 * in the same transactions.
 */
export interface ShareStore {
  /**
   * Undefined where no session is a member. Reports a damaged row, and begins the share anew for its members: nothing is lost, and they may get again
   * what they acknowledged.
   */
  findShare(groupId: GroupId, filter: TopicFilter): Promise<StoredShare | undefined>;
  /**
   * How far each of the shares is: every event up to there was acknowledged, or skipped. If the row of the oldest event that is not acknowledged is
   * damaged, the share's cursor. Leaves out shares that no session is a member of, and damaged rows of shares.
   */
  findShareCursors(groupId: GroupId, filters: readonly TopicFilter[]): Promise<ReadonlyMap<TopicFilter, Position>>;
  /** Events that were not acknowledged by members whose connection has ended, in ascending order. */
  listReturned(id: ShareId, atMost: number): Promise<readonly SharePlace[]>;
  /** Those of the shares that have returned events. */
  findReturning(ids: readonly ShareId[]): Promise<readonly ShareId[]>;
  /**
   * Moves the cursor and gives events to members, under the next epoch. `refused`: the share has another epoch, or is gone. `member-refused`: a
   * member has another epoch; nothing has changed.
   */
  takeShared(take: ShareTake): Promise<"taken" | "refused" | "member-refused">;
  /** Undoes a take whose outcome is unknown, under the next epoch: also for a session that has gone on under another epoch. */
  returnShared(take: Pick<ShareTake, "id" | "gifts">): Promise<void>;
}
