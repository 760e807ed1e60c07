import { Kysely } from "kysely";
import type { Logger } from "../../../../lib/logger.ts";
import type { Schema } from "../../schema.ts";
import type { PostgresAddress } from "../address.ts";
import { SharedPoolDialect } from "../dialect.ts";
import { ConnectionPool } from "../pool.ts";
import type { CallLimits } from "./limits.ts";

export interface CoordinationDatabase {
  readonly queries: Kysely<Schema>;
  close(): Promise<void>;
}

/** The store's database over separate connections. */
export function openCoordination(
  { address, logger }: { readonly address: PostgresAddress; readonly logger: Logger },
  limits: CallLimits,
): CoordinationDatabase {
  const { answerDelayMsMax, session, ...rest } = limits;
  const pool = new ConnectionPool({ address, logger, session, ...rest });
  const terms = { settings: "", statementMsMax: session.statementMsMax, answerDelayMsMax };
  return {
    queries: new Kysely<Schema>({ dialect: new SharedPoolDialect(pool, terms) }),
    close: async () => pool.end(),
  };
}
