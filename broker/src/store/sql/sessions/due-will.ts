import type { Transaction } from "kysely";
import { toDueWill } from "../../../ports/claimed-session.ts";
import type { DueWill, SessionClaim, StoredSession } from "../../../ports/session-store.ts";
import type { Schema } from "../schema.ts";
import { findSessionTime } from "./session-detaching.ts";
import { toSessionRow } from "./session-rows.ts";

interface Taken {
  readonly claim: SessionClaim;
  readonly former: StoredSession;
  readonly isResumed: boolean;
}

/** Stores the row that `toDueWill` returns if there is room. */
export async function keepDueWill(
  transaction: Transaction<Schema>,
  { claim, former, isResumed }: Taken,
): Promise<DueWill> {
  if (former.will === undefined) return undefined;
  const time = await findSessionTime(transaction, claim.groupId);
  const dueWill = toDueWill(claim, former, { time, isResumed });
  if (dueWill === undefined) return undefined;
  if (!claim.mayKeepWill) return "unstored";
  return (await insertSession(transaction, dueWill)) ? dueWill : "unstored";
}

/** Returns false, and inserts nothing, if a session with that key exists. A client whose key is also the key of a stored will may claim it meanwhile. */
export async function insertSession(transaction: Transaction<Schema>, session: StoredSession): Promise<boolean> {
  const inserted = await transaction
    .insertInto("sessions")
    .values(toSessionRow(session))
    .onConflict((conflict) => conflict.columns(["group_id", "interface_type", "key"]).doNothing())
    .returning("session_id")
    .executeTakeFirst();
  return inserted !== undefined;
}
