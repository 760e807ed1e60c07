import { sql } from "kysely";
import type { GroupId } from "../../domain/group-id.ts";
import { UnfitBlockError } from "../index-plan.ts";
import type { SqlDatabase } from "./schema.ts";

/**
 * The chain numbers each topic's events, so a block that does not fit meets an index that is damaged. Returns the error that says so, or any other error
 * as it is. Blocks that are final come from the own chain, whose hashes were checked: then the next start builds the index anew, whatever its checks
 * find. Other chains' nodes may leave out logs.
 */
export async function toIndexError(
  { durable, damaged }: Pick<SqlDatabase, "durable" | "damaged">,
  error: unknown,
  { groupId, isFinal }: { readonly groupId: GroupId; readonly isFinal: boolean },
): Promise<unknown> {
  if (!(error instanceof UnfitBlockError)) return error;
  if (isFinal) await spoilHead({ durable }, groupId);
  return damaged(error.message);
}

/** The next start finds a head that does not match its checksum. */
async function spoilHead({ durable }: Pick<SqlDatabase, "durable">, groupId: GroupId): Promise<void> {
  const checksum = sql<number>`-1 - abs(checksum)`;
  await durable.updateTable("groups").set({ checksum }).where("group_id", "=", groupId).execute();
}
