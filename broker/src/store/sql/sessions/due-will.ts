import type { Transaction } from "kysely";
import { toDueWill, toWillQuotas } from "../../../ports/claimed-session.ts";
import type { SessionClaim, StoredSession } from "../../../ports/session-store.ts";
import { findExceededSession } from "../access/stored-quotas.ts";
import type { Schema, SqlDatabase } from "../schema.ts";
import { findSessionTime } from "./session-detaching.ts";
import { toSessionRow } from "./session-rows.ts";

interface Taken {
  readonly claim: SessionClaim;
  readonly former: StoredSession;
  readonly isResumed: boolean;
}

/** Stores the row that `toDueWill` returns, and returns it. `full`: there is no room for it. */
export async function keepDueWill(
  database: SqlDatabase,
  transaction: Transaction<Schema>,
  { claim, former, isResumed }: Taken,
): Promise<StoredSession | "full" | undefined> {
  if (former.will === undefined) return undefined;
  const time = await findSessionTime(transaction, claim.groupId);
  const dueWill = toDueWill(claim, former, { time, isResumed });
  if (dueWill === undefined) return undefined;
  if (!claim.mayBegin) return "full";
  if ((await findExceededSession(database, transaction, toWillQuotas(claim.quotas))) !== undefined) return "full";
  await transaction.insertInto("sessions").values(toSessionRow(dueWill)).execute();
  return dueWill;
}
