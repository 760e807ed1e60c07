import type { GroupId } from "../domain/group-id.ts";
import type { Position } from "../domain/position.ts";
import { tenantOf } from "../domain/quota.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { SessionKey } from "./session-store.ts";

/** The name that a producer gave to a publish: unique in its scope, which stands for the producer. */
export interface PublishKey {
  readonly groupId: GroupId;
  readonly scope: string;
  readonly key: string;
}

/** A publish with its key, recorded before the publish goes to the ledger. */
export interface PublishKeyRow extends PublishKey {
  /** Random; an extension of the event carries it, so that a repeat finds the event in the topic. */
  readonly token: string;
  readonly topic: TopicName;
  /** The end of the index when the key was recorded. The event comes after this position, unless a reorg has removed blocks since. */
  readonly after: Position;
  /** See publishDigest in wire. */
  readonly digest: string;
  /**
   * The account whose transactions may hold the event; empty if the chain is this node's own. With several nodes, a space and an identifier follow: that of
   * the membership under which the node began the publish. Rows of earlier versions have only the account.
   */
  readonly sender: string;
  /** When the key was recorded, in milliseconds of the group's session time. */
  readonly recordedAt: number;
}

/** Condition for writing a key that belongs to a session. */
export interface Fenced {
  /**
   * The session must still have this epoch, so that no other connection has the session. Left out for a key without a session, or if no other connection
   * is possible.
   */
  readonly fence?: SessionKey | undefined;
}

/** A key that is about to be recorded. */
export interface KeyClaim extends PublishKeyRow, Fenced {
  /** Whether the claim takes the key from an intact row with another digest; false when left out. Sessions need this, because they reuse their keys. */
  readonly mayReplace?: boolean;
}

/** A key, with the token and sender that identify its holder. */
export type HeldKey = Pick<PublishKeyRow, "groupId" | "scope" | "key" | "token" | "sender"> & Fenced;

/** How many keys a group has. */
export interface KeyCounts {
  readonly total: number;
  /** By scope, and by shared account. */
  readonly byAccount: ReadonlyMap<string, number>;
}

/** A key whose stored row is damaged. */
export interface DamagedKeyRow extends PublishKey {
  readonly isDamaged: true;
}

/** A key whose session another connection has taken: nothing was written. */
export interface FencedKey extends PublishKey {
  readonly isFenced: true;
}

/** Why a key was not recorded: the row that holds it, or the fence. */
export type TakenKey = PublishKeyRow | DamagedKeyRow | FencedKey;

/**
 * Remembers the keys by which producers name their publishes.
 *
 * Guarantees: each call is one transaction, and durable when it returns. Damaged rows are returned as such, and stay.
 */
export interface PublishKeys {
  /**
   * Records each row whose fence holds until the end of the transaction, and whose key is free or held by a row that it may replace. For each other row,
   * returns the stored row that holds the key, or a {@link FencedKey}, in any order. A stored row with the same token counts as recorded. Give each key once.
   */
  recordPublishKeys(rows: readonly KeyClaim[]): Promise<readonly TakenKey[]>;
  /** The row of a key; undefined if there is none. */
  findPublishKey(key: PublishKey): Promise<PublishKeyRow | DamagedKeyRow | undefined>;
  /** Gives a row to another sender; false unless the stored row has the given token and sender. */
  movePublishKey(row: PublishKeyRow, sender: string): Promise<boolean>;
  /** Removes the rows that still have these tokens and senders, and whose fences hold. Returns the keys whose fences do not hold. */
  releasePublishKeys(rows: readonly HeldKey[]): Promise<readonly FencedKey[]>;
  /** Removes the oldest rows of a group, recorded before `before`; at most `atMost`. Returns how many. */
  expirePublishKeys(groupId: GroupId, page: { readonly before: number; readonly atMost: number }): Promise<number>;
  /** Number of rows of a group, in all and in each scope and shared account that has at least `countMin` rows. Reads one index entry for each row. */
  countPublishKeys(groupId: GroupId, countMin: number): Promise<KeyCounts>;
  /** Removes every row of a scope, for a producer that repeats no publish any more. */
  dropPublishKeys(groupId: GroupId, scope: string): Promise<void>;
}

/** Begins the scope of every session. */
const sessionPrefix = "session ";

/** The scope of a session's keys. */
export function sessionScopeOf(sessionId: string): string {
  return `${sessionPrefix}${sessionId}`;
}

/**
 * The name under which the keys of a scope are counted together with those of other scopes: `principal acme/` for all principals of the tenant acme, or one
 * name for all sessions. Undefined if the scope is only counted alone. No scope has such a name.
 */
export function sharedAccountOf(scope: string): string | undefined {
  if (scope.startsWith(sessionPrefix)) return sessionPrefix;
  const tenant = tenantOf(scope);
  return tenant === undefined ? undefined : `${tenant}/`;
}

export function toFencedKey({ groupId, scope, key }: PublishKey): FencedKey {
  return { groupId, scope, key, isFenced: true };
}
