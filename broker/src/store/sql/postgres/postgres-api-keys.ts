import type { Kysely, Transaction } from "kysely";
import type { Logger } from "../../../lib/logger.ts";
import type { Schema } from "../schema.ts";
import { type ApiKeySchema, SqlApiKeys } from "../sql-api-keys.ts";
import { parsePostgresAddress } from "./address.ts";
import { createPostgresBackend } from "./postgres-backend.ts";

/** One reads changes, one makes them. */
const connectionsMax = 2;

/** Keys in the database that nodes share. @throws StoreError when the address is malformed. */
export function createPostgresApiKeys({ url, logger }: { readonly url: string; readonly logger: Logger }): SqlApiKeys {
  const backend = createPostgresBackend({ address: parsePostgresAddress(url), logger, connectionsMax });
  return new SqlApiKeys(async () => {
    const database = await backend.open();
    return {
      durable: database.durable as unknown as Kysely<ApiKeySchema>, // These tables are beside those of the store.
      lock: (transaction) => database.lock(transaction as unknown as Transaction<Schema>, "api keys"),
      whenFree: (work) => work(),
      close: () => database.close(),
    };
  });
}
