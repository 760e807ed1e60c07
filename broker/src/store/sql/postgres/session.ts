import type { ClientBase } from "pg";
import { StoreError } from "../store-error.ts";
import type { PostgresAddress } from "./address.ts";

/** Limits that the server enforces in a session, in milliseconds. */
export interface SessionLimits {
  readonly statementMsMax: number;
  readonly lockMsMax: number;
  readonly idleInTransactionMsMax: number;
}

/** Oldest server version that the tests cover, in the server's own numbering. */
const versionMin = 150_000;

interface Server {
  readonly version: number;
  readonly encoding: string;
  readonly standby: boolean;
}

export interface SessionOptions {
  readonly address: PostgresAddress;
  readonly session: SessionLimits;
}

/** Configures a new session. Turns `synchronous_commit` on if the database has it off; other settings stay. */
const setUp = `select
  current_setting('server_version_num')::int as version,
  current_setting('server_encoding') as encoding,
  pg_is_in_recovery() as standby,
  set_config('statement_timeout', $1, false),
  set_config('lock_timeout', $2, false),
  set_config('idle_in_transaction_session_timeout', $3, false),
  set_config('default_transaction_isolation', 'read committed', false),
  set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false)`;

/** @throws StoreError if the server is unsuitable for the store. */
export async function prepareSession(
  client: ClientBase,
  { address, session, answerMsMax }: SessionOptions & { readonly answerMsMax: number },
): Promise<void> {
  const values = [session.statementMsMax, session.lockMsMax, session.idleInTransactionMsMax].map(String);
  const query = { text: setUp, values, query_timeout: answerMsMax };
  const { rows } = await client.query<Server>(query);
  const fault = rows[0] === undefined ? undefined : findFault(rows[0]);
  if (fault !== undefined) throw new StoreError(fault.fault, `${address.description} ${fault.text}`);
}

function findFault({ version, encoding, standby }: Server) {
  if (version < versionMin) {
    return {
      fault: "cannot-open",
      text: `is on PostgreSQL ${Math.floor(version / 10_000)}: 15 or later is needed`,
    } as const;
  }
  if (encoding !== "UTF8") {
    return { fault: "cannot-open", text: `has the encoding ${encoding}: create it with UTF8` } as const;
  }
  // Counts as an outage: the standby may soon become the primary, or its name may soon point to another server.
  if (standby) return { fault: "unavailable", text: "is a standby: reach the primary" } as const;
  return undefined;
}
