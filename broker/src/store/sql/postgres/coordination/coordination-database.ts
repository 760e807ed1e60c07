import { Kysely } from "kysely";
import type { Schema } from "../../schema.ts";
import type { PostgresAddress } from "../address.ts";
import { SharedPoolDialect } from "../dialect.ts";
import { ConnectionPool, type PoolOptions } from "../pool.ts";
import type { CallLimits } from "./limits.ts";

export interface CoordinationDatabase {
  readonly queries: Kysely<Schema>;
  close(): Promise<void>;
}

/** The store's database over separate connections. */
export function openCoordination(
  { address, logger, onFault }: { readonly address: PostgresAddress } & Pick<PoolOptions, "logger" | "onFault">,
  limits: CallLimits,
): CoordinationDatabase {
  const { answerDelayMsMax, session, ...rest } = limits;
  const pool = new ConnectionPool({ address, logger, onFault, session, ...rest });
  const terms = { settings: "", statementMsMax: session.statementMsMax, answerDelayMsMax };
  return {
    queries: new Kysely<Schema>({ dialect: new SharedPoolDialect(pool, terms) }),
    close: async () => pool.end(),
  };
}
