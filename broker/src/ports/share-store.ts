import type { GroupId } from "../domain/group-id.ts";
import type { Position } from "../domain/position.ts";
import type { TopicFilter } from "../domain/topic-filter.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { SessionKey, ShareId } from "./session-store.ts";

/** A stream of events with several members. It begins with its first member, and ends with its last one. */
export interface StoredShare {
  readonly id: ShareId;
  /** Fencing token: grows with each {@link ShareStore.takeShared}, and with each rollback. */
  readonly epoch: number;
  /** Every event up to here was given to a member, or passed. */
  readonly cursor: Position;
}

/** Where an event of a share is. */
export interface SharePlace {
  readonly topic: TopicName;
  readonly position: Position;
}

/** An event for a member, which must acknowledge it. */
export interface ShareGift extends SharePlace {
  readonly to: SessionKey;
}

/** Events that pass from a share to its members. */
export interface ShareTake {
  readonly id: ShareId;
  readonly epoch: number;
  readonly cursor: Position;
  readonly gifts: readonly ShareGift[];
  /** Returned events that are no more. */
  readonly dropped: readonly Position[];
}

/**
 * Shares that sessions of any node are members of. An event that was given and is not acknowledged is with one session and one epoch of it. When the
 * epoch ends with its connection, in whatever way, the event is returned: the next member takes it. A share begins and ends with the
 * filters `$share/…` of sessions, in the same transactions.
 */
export interface ShareStore {
  /**
   * Undefined where no session is a member. Reports a damaged row, and begins the share anew for its members: nothing is lost, and they may get again
   * what they acknowledged.
   */
  findShare(groupId: GroupId, filter: TopicFilter): Promise<StoredShare | undefined>;
  /**
   * How far each of the shares is: every event up to there was acknowledged, or passed. Those that no session is a member of, and damaged rows of
   * shares and of events, are left out.
   */
  findSharePlaces(groupId: GroupId, filters: readonly TopicFilter[]): Promise<ReadonlyMap<TopicFilter, Position>>;
  /** Events that a member had whose connection has ended, in ascending order. */
  listReturned(id: ShareId, atMost: number): Promise<readonly SharePlace[]>;
  /** Those of the shares that have returned events. */
  findReturning(ids: readonly ShareId[]): Promise<readonly ShareId[]>;
  /**
   * Moves the cursor and gives events to members, under the next epoch. `refused`: the share has another epoch, or is gone. `member-refused`: a
   * member has another epoch; nothing has changed.
   */
  takeShared(take: ShareTake): Promise<"taken" | "refused" | "member-refused">;
  /** Takes back gifts of a take whose outcome is not known, under the next epoch: also from a session that has gone on under another epoch. */
  returnShared(take: Pick<ShareTake, "id" | "gifts">): Promise<void>;
}
