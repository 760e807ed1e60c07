import type { StoredRole } from "../domain/access-role.ts";
import type { AccessRule } from "../domain/access-rule.ts";

/** A key of a client as it is stored: its secret only as a digest. */
export interface ApiKey {
  /** 16 hexadecimal digits, public. */
  readonly id: string;
  /** SHA-256 of the secret, in hexadecimal digits. */
  readonly digest: string;
  /** Name of whoever has the key; several keys may have the same. */
  readonly principal: string;
  readonly tenant: string | undefined;
  readonly roles: readonly string[];
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Undefined for never. */
  readonly expiresAt: number | undefined;
  /** Undefined while it is not revoked. */
  readonly revokedAt: number | undefined;
}

/** A key with the number of its latest change. */
export interface NumberedApiKey extends ApiKey {
  readonly revision: number;
}

/** What changed in the table of roles. */
export interface RoleChanges {
  /** Of the table. */
  readonly revision: number;
  /** Every role that the table has now. */
  readonly names: ReadonlySet<string>;
  /** Those that were put after the revision that was asked for, by name. */
  readonly changed: readonly StoredRole[];
}

/**
 * The keys of clients, and roles, which every node and the command line share.
 *
 * Guarantees: each change is one transaction, durable when it returns, and gets the next revision of its table: whoever has read all changes up to a
 * revision misses none that is committed later. A damaged row of a key is left out; that of a role has no rules.
 */
export interface ApiKeys {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** False if there are `atMost` keys already, or one of this id. */
  insertApiKey(key: ApiKey, atMost: number): Promise<boolean>;
  /** Keeps the time of the first revocation. False if there is no such key. */
  revokeApiKey(id: string, revokedAt: number): Promise<boolean>;
  /** Removes keys that expired or were revoked before; returns how many. Nodes go on without them. */
  pruneApiKeys(before: number): Promise<number>;
  /**
   * Keys changed after a revision, in the order of their revisions. 0 for all. Rejects where the table has not reached that revision: somebody
   * put an older one in its place.
   */
  listApiKeys(afterRevision: number): Promise<readonly NumberedApiKey[]>;
  /** Makes a role, or replaces its rules. False if there are `atMost` others. */
  putRole(role: { readonly name: string; readonly rules: readonly AccessRule[] }, atMost: number): Promise<boolean>;
  /** False if there is no such role. */
  deleteRole(name: string): Promise<boolean>;
  /** What changed after a revision, 0 for all; undefined for nothing. Rejects as {@link listApiKeys}. */
  readRoles(afterRevision: number): Promise<RoleChanges | undefined>;
}
