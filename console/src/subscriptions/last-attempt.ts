import type { ListedSubscription } from "./search.ts";

export interface LastAttempt {
  readonly outcome: string;
  readonly at: string;
  readonly reason?: string | undefined;
}

/**
 * The last known attempt. The answering node knows only its own attempts, but the store has the time of the last acknowledgement. If that time is later,
 * another node made a later attempt. The receiver accepted it, unless the receiver is failing now: then the later attempts are unknown.
 */
export function lastAttemptOf(
  item: Pick<ListedSubscription, "lastAttempt" | "failing" | "notifiedAt">,
): LastAttempt | undefined {
  const { lastAttempt, failing, notifiedAt } = item;
  if (lastAttempt !== undefined && (notifiedAt === undefined || lastAttempt.at >= notifiedAt)) return lastAttempt;
  return failing === undefined && notifiedAt !== undefined ? { outcome: "accepted", at: notifiedAt } : lastAttempt;
}
