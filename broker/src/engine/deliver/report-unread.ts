import type { Subscription } from "../../domain/subscription.ts";
import type { BoundedLog } from "../../lib/bounded-log.ts";
import type { Troubles } from "../integrity/troubles.ts";

export interface UnreadReports {
  /** Notes each failure to read events or their origins. The feed, or the worker, clears it after a read that succeeds. */
  readonly troubles: Troubles;
  /** Logs these failures. Shared by all workers of a group: all of them may fail at once, again and again. */
  readonly unreadLog: Pick<BoundedLog, "warn">;
}

/** Reports to health and to the log that the events of a subscription, or their origins, cannot be read. */
export function reportUnread(
  { troubles, unreadLog }: UnreadReports,
  { id, groupId }: Pick<Subscription, "id" | "groupId">,
  error: unknown,
): void {
  unreadLog.warn("events or their origins not read, trying again", { subscriptionId: id, error });
  const reason = error instanceof Error ? error.message : String(error);
  troubles.note(id, { groupId, reason: `its events or their origins cannot be read: ${reason}`, error });
}
