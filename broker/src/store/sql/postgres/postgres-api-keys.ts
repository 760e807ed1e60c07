import { type Kysely, sql, type Transaction } from "kysely";
import type { StoredRole } from "../../../domain/access-role.ts";
import type { Logger } from "../../../lib/logger.ts";
import type { Schema } from "../schema.ts";
import { type ApiKeyDatabase, readStoredRoles, SqlApiKeys } from "../access/sql-api-keys.ts";
import type { ApiKeySchema } from "../access/sql-key-schema.ts";
import { parsePostgresAddress } from "./address.ts";
import { createPostgresBackend, type PostgresBackendOptions } from "./postgres-backend.ts";

/** Number of connections: one reads changes, the other makes them. */
const connectionsMax = 2;

interface PostgresApiKeysOptions {
  readonly url: string;
  readonly logger: Logger;
  readonly onFault?: PostgresBackendOptions["onFault"];
}

/** Keys in the database that nodes share. @throws StoreError when the address is malformed. */
export function createPostgresApiKeys(options: PostgresApiKeysOptions): SqlApiKeys {
  return new SqlApiKeys(createOpener(options));
}

/** Reads the roles in the database that nodes share, without changing it. @throws StoreError when the address is malformed. */
export function readPostgresRoles(options: PostgresApiKeysOptions): Promise<readonly StoredRole[]> {
  return readStoredRoles(createOpener(options));
}

function createOpener({ url, logger, onFault }: PostgresApiKeysOptions): () => Promise<ApiKeyDatabase> {
  const backend = createPostgresBackend({ address: parsePostgresAddress(url), logger, connectionsMax, onFault });
  return async () => {
    const database = await backend.open();
    const durable = database.durable as unknown as Kysely<ApiKeySchema>; // The database has the tables of keys beside those of the store.
    return {
      durable,
      lock: (transaction) => database.lock(transaction as unknown as Transaction<Schema>, "api keys"),
      whenFree: (work) => work(),
      hasRoles: async () => {
        const { rows } = await sql<{ found: boolean }>`select to_regclass('access_roles') is not null as found`.execute(
          durable,
        );
        return rows[0]?.found === true;
      },
      close: () => database.close(),
    };
  };
}
