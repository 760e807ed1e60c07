import type { GroupId } from "../domain/group-id.ts";
import type { NodeId } from "../domain/node.ts";
import type { Position } from "../domain/position.ts";
import type { OverQuota, StoredQuota } from "../domain/quota.ts";
import type { SessionFilter } from "../domain/session-filter.ts";
import type { SessionProtocol, SubscriptionId } from "../domain/subscription.ts";
import type { TopicFilter } from "../domain/topic-filter.ts";

/** A session's identifier: a UUID in lower case. */
export type SessionId = string & { readonly __brand: "SessionId" };

/** The client's name for its session; unique in the store. */
export interface SessionName {
  readonly groupId: GroupId;
  readonly protocol: SessionProtocol;
  readonly key: string;
}

/** The parts of a session that decide who may write it. */
export interface SessionKey {
  readonly id: SessionId;
  /**
   * Fencing token. It grows when a connection begins or ends, when `takeDueSession` or `removeSessionFilter` changes the session, and when a node other than
   * the owner rolls back.
   */
  readonly epoch: number;
}

/** A share's identifier: a UUID. A share that ends and begins again gets a new one. */
export type ShareId = string & { readonly __brand: "ShareId" };

/** An event of a share that no other member can get: this member has acknowledged it, or keeps it even if its connection ends. */
export interface SettledEvent {
  readonly share: ShareId;
  readonly position: Position;
  /** Epoch of the session when it got the event. After a rollback, another event may have the same position, and was given under another epoch. */
  readonly givenEpoch: number;
}

/** The progress of a session. */
export interface SessionState extends SessionKey {
  /** Every event up to this position is acknowledged, or was not for the session. */
  readonly cursor: Position;
  /** Every event up to this position was given to the session, or was not for it. The events in flight are between the cursor and this position. */
  readonly taken: Position;
  /**
   * Upper bound of the positions of events from outside the session's stream, which are retained ones and those of shares. Covers those in flight, and the
   * retained ones that the session has yet to get.
   */
  readonly outside: Position;
  /** The events in flight, as the engine encodes them. */
  readonly inFlight: Uint8Array;
  /** Events of shares that the session has settled; none if left out. */
  readonly settled?: readonly SettledEvent[];
}

/** What the store keeps of a connection for the time after its end. */
export interface StoredConnectionEnd {
  readonly principal: string;
  /** The will, as the engine encodes it; undefined for none. */
  readonly will: Uint8Array | undefined;
  readonly willDelayMs: number;
  /** How long the session outlives its connection; 0 for not at all. */
  readonly expiryMs: number;
}

/**
 * A session. Its times are in the group's session time, in milliseconds. A broker advances this time while a session has no connection or a publish key
 * is kept. It stops while no broker runs, and depends on no clock that anybody can set.
 */
export interface StoredSession extends SessionName, Omit<SessionState, "settled">, StoredConnectionEnd {
  /** The node that has the session's connection; undefined if no node has one, or if the store has a single process. */
  readonly owner: NodeId | undefined;
  /** When the connection ended; undefined while there is one. */
  readonly detachedAt: number | undefined;
  readonly willDueAt: number | undefined;
  /** Milliseconds since the epoch, UTC. */
  readonly createdAt: number;
}

/** A filter of a session. */
export interface StoredFilter extends SessionFilter {
  /** Identifies the filter in the listing of subscriptions. */
  readonly id: SubscriptionId;
  /** The filter matches only events after this position. */
  readonly startsAfter: Position;
}

export interface SessionWithFilters {
  readonly session: StoredSession;
  readonly filters: readonly StoredFilter[];
}

/** A connection's request for its session. */
export interface SessionClaim extends SessionName, StoredConnectionEnd {
  /** Identifier, first epoch and position of a session that begins now. */
  readonly newId: SessionId;
  readonly newEpoch: number;
  readonly position: Position;
  /** Generation of the index in which the position was read; see Store.insertSubscription. */
  readonly generation: number;
  /** Identifier for the row in which the store may keep the former connection's will; see {@link SessionStore.claimSession}. */
  readonly willId: SessionId;
  readonly owner: NodeId | undefined;
  readonly now: number;
  /** Whether to end a session of that name and begin a new one. */
  readonly isClean: boolean;
  /** Whether the session is a stream. A stream without filters is not resumed: its attach failed early, and the next attach names its own position. */
  readonly isStream: boolean;
  /** Whether a session that begins now is stored. */
  readonly isStored: boolean;
  /** Whether a stored session may begin if there is none of that name. */
  readonly mayBegin: boolean;
  /** Whether the store has room for the former connection's will. */
  readonly mayKeepWill: boolean;
  /** Quotas for the stored sessions of the principal; none if left out. */
  readonly quotas?: readonly StoredQuota[];
}

export type DueWill = StoredSession | "unstored" | undefined;

/**
 * `former`: the session before the claim. Unless it is resumed, it no longer exists. `current`: undefined if the session is not stored. `dueWill`: the row
 * with the former connection's will, if the broker must publish this will; see `toDueWill`. `unstored`: the broker must publish the will, but no row has it.
 * There was no room, or another row has the key, most likely with an earlier will of the same session.
 */
export type SessionClaimed =
  | {
      readonly status: "resumed";
      readonly former: StoredSession;
      readonly current: SessionWithFilters;
      readonly dueWill: DueWill;
    }
  | {
      readonly status: "begun";
      readonly former: StoredSession | undefined;
      readonly current: StoredSession | undefined;
      readonly dueWill: DueWill;
    }
  /** There is no session of that name, and none may begin. */
  | { readonly status: "full" }
  /** A quota does not allow a further session. */
  | OverQuota
  /** The row of the session is damaged, and was removed: claim again. */
  | { readonly status: "damaged" }
  /** Another claim took the name meanwhile: claim again. */
  | { readonly status: "taken" }
  /** The index has rolled back since the position was read: claim again. */
  | { readonly status: "rolled-back" };

/** Result of a claim that gave a session to the connection. */
export type SessionGranted = Extract<SessionClaimed, { readonly status: "resumed" | "begun" }>;

export interface FilterChange {
  readonly put: readonly StoredFilter[];
  readonly removed: readonly TopicFilter[];
  readonly generation: number;
  /** Whether the session loses all its earlier filters; not if left out. */
  readonly replacesAll?: boolean;
}

/**
 * Sessions that outlast their connections. Each call is one transaction, and durable when it returns, except {@link saveSessions} without `isDurable`.
 * When a group's index rolls back to a block, later positions of its sessions move back to the end of this block, since the events after it are gone.
 * If the rollback has a lease, each session that the lease's node does not own gets a new epoch.
 */
export interface SessionStore {
  /**
   * Gives a session to a connection under a new epoch, whoever had it before, or begins a session. If the will of the former connection is due and there is
   * room, keeps it in a row of its own. Notifies the earlier owner.
   */
  claimSession(claim: SessionClaim): Promise<SessionClaimed>;
  findSession(id: SessionId): Promise<SessionWithFilters | undefined>;
  /**
   * Writes each row whose session exists with the given epoch. Returns the identifiers of the other sessions. Without `isDurable`, a power cut may lose the
   * write, but the end of the process does not.
   */
  saveSessions(rows: readonly SessionState[], options: { readonly isDurable: boolean }): Promise<readonly SessionId[]>;
  /** `refused`: there is no session with that epoch. */
  saveSessionFilters(key: SessionKey, change: FilterChange): Promise<"saved" | "refused" | "rolled-back">;
  /**
   * Ends the connection of a session, under the next epoch: the session then has no owner, and its will delay and expiry begin. Returns false if there
   * is no session with that epoch.
   */
  detachSession(key: SessionKey, end: Omit<StoredConnectionEnd, "principal">): Promise<boolean>;
  /**
   * Takes a session that has no connection, and whose will or end is due. The session gets a new epoch, so that only one node handles it. Returns undefined if
   * there is no session with that epoch, or if it has a connection.
   */
  takeDueSession(key: SessionKey, owner: NodeId | undefined): Promise<StoredSession | undefined>;
  /** Marks the will as published: from then on only the session's end can be due. Returns false if there is no session with that epoch. */
  settleWill(key: SessionKey): Promise<boolean>;
  /** Returns false if there is no session with that epoch. */
  removeSession(key: SessionKey): Promise<boolean>;
  /**
   * Detaches the sessions whose connection was lost: their owner is no longer a member, or the only process of the store was killed. Uses several transactions
   * if there are many.
   */
  detachLost(groupId: GroupId): Promise<void>;
  /** The group's session time, in milliseconds; see {@link StoredSession}. */
  findSessionTime(groupId: GroupId): Promise<number>;
  /** Adds to the group's session time, and returns it. */
  advanceSessionTime(groupId: GroupId, byMs: number): Promise<number>;
  /** Sessions that have neither a connection nor an owner, and whose will or end is due. The one due longest comes first. */
  listDueSessions(groupId: GroupId, atMost: number): Promise<readonly SessionKey[]>;
  /** Sessions in the order of their identifiers, beginning after `after`. Leaves out damaged ones. Returns fewer than the limit only at the end. */
  listSessions(page: {
    readonly after: SessionId | undefined;
    readonly limit: number;
  }): Promise<readonly SessionWithFilters[]>;
  /** The session of a filter; undefined if there is none. */
  findFilterOwner(id: SubscriptionId): Promise<SessionWithFilters | undefined>;
  /** Removes a filter of any node's session, under a new epoch, and notifies the session's owner. Returns false if there is no such filter. */
  removeSessionFilter(id: SubscriptionId): Promise<boolean>;
  /** Sessions that have no connection, longest detached first. */
  listDetached(groupId: GroupId, atMost: number): Promise<readonly SessionKey[]>;
  /** Number of sessions that have no connection. Reads one index entry for each. */
  countDetached(groupId: GroupId): Promise<number>;
}

/** When a session without a connection ends, in session time; undefined while it has a connection. */
export function endsAt({ detachedAt, expiryMs }: Pick<StoredSession, "detachedAt" | "expiryMs">): number | undefined {
  return detachedAt === undefined ? undefined : detachedAt + expiryMs;
}
