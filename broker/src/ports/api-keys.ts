import type { StoredRole } from "../domain/access-role.ts";
import type { AccessRule } from "../domain/access-rule.ts";

/** A client's key as it is stored, with a digest of its secret instead of the secret. */
export interface ApiKey {
  /** 16 hexadecimal digits, public. */
  readonly id: string;
  /** SHA-256 of the secret, in hexadecimal digits. */
  readonly digest: string;
  /** Name of the client; several keys may have the same name. */
  readonly principal: string;
  readonly tenant: string | undefined;
  readonly roles: readonly string[];
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Milliseconds since the epoch; undefined if the key never expires. */
  readonly expiresAt: number | undefined;
  /** Milliseconds since the epoch; undefined unless the key is revoked. */
  readonly revokedAt: number | undefined;
}

/** A key with the number of its latest change. */
export interface NumberedApiKey extends ApiKey {
  readonly revision: number;
}

/** The table of roles. */
export interface StoredRoles {
  /** The newest revision of the table. */
  readonly revision: number;
  /** All roles, in the order of their names. */
  readonly roles: readonly StoredRole[];
}

/**
 * The keys of clients, and roles, which every node and the command line share.
 *
 * Guarantees: each change is one transaction, and durable when its call returns. Each change gets the next revision of its table: a reader that has all changes
 * up to a revision misses no later change. A call that returns false takes no revision, nor does the removal of ended keys. Reads leave out a key with a
 * damaged row; a role with a damaged row has undefined rules.
 */
export interface ApiKeys {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** False if `atMost` keys are valid at the time `key.createdAt`, or if a key with this id exists. Expired and revoked keys do not count. */
  insertApiKey(key: ApiKey, atMost: number): Promise<boolean>;
  /** Keeps the time of the first revocation. False if there is no such key. */
  revokeApiKey(id: string, revokedAt: number): Promise<boolean>;
  /**
   * Removes keys that expired or were revoked before a time; returns how many. With `keepsOwners`, keeps each principal's latest changed key, as
   * a record that the principal had a key. `listApiKeys` does not report the removal, since nodes refuse these keys already.
   */
  pruneApiKeys(before: number, options: { readonly keepsOwners: boolean }): Promise<number>;
  /**
   * Keys that changed after a revision, in the order of their revisions; revision 0 returns every key. Rejects if somebody has replaced the table by an older
   * one. The call notices that if the table has not reached the revision, or if the newest key that it listed before has changed other than by a revocation,
   * or is missing. A key that ended at least a day ago may be missing.
   */
  listApiKeys(afterRevision: number): Promise<readonly NumberedApiKey[]>;
  /** Creates a role, or replaces its rules. False if there are `atMost` other roles. */
  putRole(role: { readonly name: string; readonly rules: readonly AccessRule[] }, atMost: number): Promise<boolean>;
  /** False if there is no such role. */
  deleteRole(name: string): Promise<boolean>;
  /**
   * All roles; undefined if nothing changed after a revision. Rejects if the table has not reached the revision. If somebody replaced the table by another one
   * that has reached the revision, also returns all roles, so that the reader misses no change.
   */
  readRoles(afterRevision: number): Promise<StoredRoles | undefined>;
}
