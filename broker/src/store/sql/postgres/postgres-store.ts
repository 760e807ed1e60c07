import { type Logger, silentLogger } from "../../../lib/logger.ts";
import { SqlStore } from "../sql-store.ts";
import { parsePostgresAddress } from "./address.ts";
import { answering } from "./answering.ts";
import { createPostgresBackend, type PostgresBackendOptions } from "./postgres-backend.ts";

export interface PostgresStoreOptions extends Pick<PostgresBackendOptions, "session" | "onFault"> {
  /** `postgres://user:password@host:port/database`, with `sslmode` and the other parameters as PostgreSQL's own programs take them. */
  readonly url: string;
  readonly logger?: Logger;
  readonly connectionsMax?: number;
}

const connectionsMaxDefault = 10;

/**
 * A store in a PostgreSQL database, which other nodes may use at the same time. Calls `onFault` only for damaged data; the store recovers from all other
 * faults. If a call fails for a reason that can pass, it throws error 200207, or 200300 if it got no free connection in time. Both have a StoreError as their
 * cause. It throws other errors unchanged, as `start` throws all of them.
 * @throws StoreError when the address is malformed.
 */
export function createPostgresStore(options: PostgresStoreOptions): SqlStore {
  const { url, logger = silentLogger, connectionsMax = connectionsMaxDefault, ...rest } = options;
  const backend = createPostgresBackend({ ...rest, address: parsePostgresAddress(url), logger, connectionsMax });
  return answering(new SqlStore(backend, logger), { except: "start" });
}
