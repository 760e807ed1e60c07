import type { ListedSubscription } from "./search.ts";

export interface LastAttempt {
  readonly outcome: string;
  readonly at: string;
  readonly reason?: string | undefined;
}

/**
 * The last attempt that is known: a node keeps its own in memory. What it does not know was accepted, unless the receiver fails; the store has the time of
 * the last acknowledgement.
 */
export function lastAttemptOf(
  item: Pick<ListedSubscription, "lastAttempt" | "failing" | "notifiedAt">,
): LastAttempt | undefined {
  const { lastAttempt, failing, notifiedAt } = item;
  if (lastAttempt !== undefined && (notifiedAt === undefined || lastAttempt.at >= notifiedAt)) return lastAttempt;
  return failing === undefined && notifiedAt !== undefined ? { outcome: "accepted", at: notifiedAt } : lastAttempt;
}
