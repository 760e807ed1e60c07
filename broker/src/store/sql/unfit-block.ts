import { sql } from "kysely";
import type { GroupId } from "../../domain/group-id.ts";
import { UnfitBlockError } from "../index-plan.ts";
import type { SqlDatabase } from "./schema.ts";

/**
 * Blocks that are final come from the own chain, whose hashes were checked: one that does not fit meets an index that is damaged. Returns the error that
 * says so; the next start builds the index anew, whatever its checks find. Any other error stays as it is: another chain's node may have left out logs,
 * which it or another node gives at the next read.
 */
export async function toIndexError(
  { durable, damaged }: Pick<SqlDatabase, "durable" | "damaged">,
  error: unknown,
  { groupId, isFinal }: { readonly groupId: GroupId; readonly isFinal: boolean },
): Promise<unknown> {
  if (!(error instanceof UnfitBlockError) || !isFinal) return error;
  await spoilHead({ durable }, groupId);
  return damaged(error.message);
}

/** The next start finds a head that does not match its checksum. */
async function spoilHead({ durable }: Pick<SqlDatabase, "durable">, groupId: GroupId): Promise<void> {
  const checksum = sql<number>`-1 - abs(checksum)`;
  await durable.updateTable("groups").set({ checksum }).where("group_id", "=", groupId).execute();
}
