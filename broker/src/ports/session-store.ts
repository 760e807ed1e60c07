import type { GroupId } from "../domain/group-id.ts";
import type { NodeId } from "../domain/node.ts";
import type { Position } from "../domain/position.ts";
import type { OverQuota, StoredQuota } from "../domain/quota.ts";
import type { SessionFilter } from "../domain/session-filter.ts";
import type { SessionProtocol, SubscriptionId } from "../domain/subscription.ts";
import type { TopicFilter } from "../domain/topic-filter.ts";

/** A session's identifier: a UUID in lower case. */
export type SessionId = string & { readonly __brand: "SessionId" };

/** What a client calls its session; unique in the store. */
export interface SessionName {
  readonly groupId: GroupId;
  readonly protocol: SessionProtocol;
  readonly key: string;
}

/** The parts of a session that decide who may write it. */
export interface SessionKey {
  readonly id: SessionId;
  /** Fencing token: grows with each connection, with each end of one, and with each rollback that must stop the owner's writes. */
  readonly epoch: number;
}

/** A share's identifier: a UUID. A share that begins anew has another one. */
export type ShareId = string & { readonly __brand: "ShareId" };

/** A member has acknowledged an event, or has it for good. */
export interface SettledEvent {
  readonly share: ShareId;
  readonly position: Position;
}

/** How far a session is. */
export interface SessionState extends SessionKey {
  /** Every event up to here is acknowledged, or was not for the session. */
  readonly cursor: Position;
  /** Every event up to here was given or passed; those in flight lie between. */
  readonly taken: Position;
  /** What is in flight, as the engine encodes it. */
  readonly inFlight: Uint8Array;
  /** Events of shares that it had and has done with; none when left out. */
  readonly settled?: readonly SettledEvent[];
}

/** What the end of a connection leaves to be done. */
export interface Legacy {
  readonly principal: string;
  /** The will, as the engine encodes it; undefined for none. */
  readonly will: Uint8Array | undefined;
  readonly willDelayMs: number;
  /** How long the session outlives its connection; 0 for not at all. */
  readonly expiryMs: number;
}

/**
 * A session. Its times are in the group's session time, which is milliseconds for which a broker has served the group: it depends on no clock that
 * anybody can set, and stands still while no broker runs.
 */
export interface StoredSession extends SessionName, Omit<SessionState, "settled">, Legacy {
  /** The node of its connection; undefined for none, and with a single process. */
  readonly owner: NodeId | undefined;
  /** Since when it has no connection; undefined while it has one. */
  readonly detachedAt: number | undefined;
  readonly willDueAt: number | undefined;
  /** Milliseconds since the epoch, UTC. */
  readonly createdAt: number;
}

/** A filter of a session. */
export interface StoredFilter extends SessionFilter {
  /** Names it in the listing of subscriptions. */
  readonly id: SubscriptionId;
  /** Only events after this position. */
  readonly startsAfter: Position;
}

export interface SessionWithFilters {
  readonly session: StoredSession;
  readonly filters: readonly StoredFilter[];
}

/** A connection that wants its session. */
export interface SessionClaim extends SessionName, Legacy {
  /** Identifier, first epoch and position of a session that begins now. */
  readonly newId: SessionId;
  readonly newEpoch: number;
  readonly position: Position;
  /** Of the index in which the position lies; see Store.insertSubscription. */
  readonly generation: number;
  readonly owner: NodeId | undefined;
  readonly now: number;
  /** Ends a session of that name, and begins anew. */
  readonly isClean: boolean;
  /** Whether a session that begins now is stored. */
  readonly isStored: boolean;
  /** Whether a stored session may begin where there is none of that name. */
  readonly mayBegin: boolean;
  /** What bounds the stored sessions of its principal; nothing if left out. */
  readonly quotas?: readonly StoredQuota[];
}

/** `former`: the session as it was; where it did not go on, it is gone. */
export type SessionClaimed =
  | { readonly status: "resumed"; readonly former: StoredSession; readonly current: SessionWithFilters }
  | {
      readonly status: "begun";
      readonly former: StoredSession | undefined;
      readonly current: StoredSession | undefined;
    }
  /** There is no session of that name, and none may begin. */
  | { readonly status: "full" }
  /** The same, because of a quota. */
  | OverQuota
  /** The row of the session is damaged, and was removed: claim again. */
  | { readonly status: "damaged" }
  /** The index has rolled back since: claim again. */
  | { readonly status: "went-back" };

/** A claim by which a connection has its session. */
export type SessionGranted = Extract<SessionClaimed, { readonly status: "resumed" | "begun" }>;

export interface FilterChange {
  readonly put: readonly StoredFilter[];
  readonly removed: readonly TopicFilter[];
  readonly generation: number;
}

/**
 * Sessions that outlast their connections. Each call is one transaction; what is answered is on disk, except where {@link saveSessions} says
 * otherwise. A rollback of a group's index moves later positions of its sessions back, and with a lease gives those of other nodes a new epoch.
 */
export interface SessionStore {
  /** Gives a session to a connection under a new epoch, whoever had it, or begins one. Notifies the earlier owner. */
  claimSession(claim: SessionClaim): Promise<SessionClaimed>;
  findSession(id: SessionId): Promise<SessionWithFilters | undefined>;
  /** Returns the sessions that do not exist with their epoch. Unless it is durable, a power cut may lose it, but not a kill. */
  saveSessions(rows: readonly SessionState[], options: { readonly isDurable: boolean }): Promise<readonly SessionId[]>;
  /** `refused`: there is no session with that epoch. */
  saveSessionFilters(key: SessionKey, change: FilterChange): Promise<"saved" | "refused" | "went-back">;
  /**
   * Ends the connection of a session, under the next epoch: the session has no owner then, and its time runs. Returns false if there is no session
   * with that epoch.
   */
  detachSession(key: SessionKey, legacy: Omit<Legacy, "principal">): Promise<boolean>;
  /** Takes a session without connection whose will or end is due, under a new epoch, so that one node alone sees to it. Undefined for another epoch. */
  takeDueSession(key: SessionKey, owner: NodeId | undefined): Promise<StoredSession | undefined>;
  /** Marks the will as published: only the end is due then. Returns false if there is no session with that epoch. */
  settleWill(key: SessionKey): Promise<boolean>;
  /** Returns false if there is no session with that epoch. */
  removeSession(key: SessionKey): Promise<boolean>;
  /** Ends the connections of sessions that have none: their owner is no member, or a killed process that has the store alone left them. */
  detachLost(groupId: GroupId): Promise<void>;
  /** The group's session time, in milliseconds: how long its nodes have run while something waited for this time. */
  findSessionTime(groupId: GroupId): Promise<number>;
  /** Adds to the group's session time, and returns it. */
  advanceSessionTime(groupId: GroupId, byMs: number): Promise<number>;
  /** Sessions without connection and owner whose will or end is due, those due for longest first. */
  listDueSessions(groupId: GroupId, atMost: number): Promise<readonly SessionKey[]>;
  /** In the order of their identifiers, after one of them. Leaves out damaged ones; fewer than the limit only at the end. */
  listSessions(page: {
    readonly after: SessionId | undefined;
    readonly limit: number;
  }): Promise<readonly SessionWithFilters[]>;
  /** The session of a filter; undefined if there is none. */
  findFilterOwner(id: SubscriptionId): Promise<SessionWithFilters | undefined>;
  /** Removes a filter of any node's session, under a new epoch, and notifies its owner. Returns false if there is none. */
  removeSessionFilter(id: SubscriptionId): Promise<boolean>;
  /** Sessions of a group without connection, those that have had none for longest first. */
  listDetached(groupId: GroupId, atMost: number): Promise<readonly SessionKey[]>;
  /** How many sessions of a group have no connection. Reads an index entry of each. */
  countDetached(groupId: GroupId): Promise<number>;
}

/** When a session without connection is over, in session time. */
export function endsAt({ detachedAt, expiryMs }: Pick<StoredSession, "detachedAt" | "expiryMs">): number | undefined {
  return detachedAt === undefined ? undefined : detachedAt + expiryMs;
}
