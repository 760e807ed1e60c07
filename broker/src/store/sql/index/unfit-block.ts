import { sql } from "kysely";
import type { GroupId } from "../../../domain/group-id.ts";
import { UnfitBlockError } from "../../../ports/unfit-block-error.ts";
import type { SqlDatabase } from "../schema.ts";

/**
 * Converts the error for a final block that does not fit the index. Such blocks come from the embedded chain, whose hashes were checked, so the index is
 * damaged. Marks the index, so that the next start empties it, and returns an error that says so. Returns other errors unchanged: a node of
 * another chain may have left out logs that the next read returns.
 */
export async function toIndexError(
  { durable, damaged }: Pick<SqlDatabase, "durable" | "damaged">,
  error: unknown,
  { groupId, isFinal }: { readonly groupId: GroupId; readonly isFinal: boolean },
): Promise<unknown> {
  if (!(error instanceof UnfitBlockError) || !isFinal) return error;
  await invalidateHead({ durable }, groupId);
  return damaged(error.message);
}

/** Makes the head's checksum wrong, so that the next start empties the index. */
async function invalidateHead({ durable }: Pick<SqlDatabase, "durable">, groupId: GroupId): Promise<void> {
  const checksum = sql<number>`-1 - abs(checksum)`;
  await durable.updateTable("groups").set({ checksum }).where("group_id", "=", groupId).execute();
}
