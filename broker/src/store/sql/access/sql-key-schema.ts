/** One row for each key; see the port's ApiKey. */
export interface ApiKeyTable {
  readonly key_id: string;
  readonly digest: string;
  readonly principal: string;
  readonly tenant: string | null;
  /** A JSON list. */
  readonly roles: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly revoked_at: number | null;
  readonly revision: number;
  readonly checksum: number;
}

/** One row for each role. Any column may have any value: another program may have changed it. */
export interface RoleTable {
  readonly name: string;
  /** A JSON list. */
  readonly rules: string;
  readonly revision: number;
  readonly checksum: number;
}

/** The tables of keys and roles. They are not part of the store's schema: the command line opens them while a broker uses the store. */
export interface ApiKeySchema {
  readonly api_keys: ApiKeyTable;
  /** One row. Each change updates it first, so that changes happen one after the other. */
  readonly api_key_revisions: { readonly only: number; readonly revision: number };
  readonly access_roles: RoleTable;
  /** Like `api_key_revisions`, for roles. */
  readonly access_role_revisions: { readonly only: number; readonly revision: number };
}
