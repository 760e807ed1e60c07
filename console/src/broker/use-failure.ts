import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";

type Asked = Pick<
  UseQueryResult<unknown, unknown>,
  "error" | "failureReason" | "errorUpdateCount" | "isPending" | "isPlaceholderData"
>;

/**
 * The failure of a query, also while the query asks again. React Query clears `error` while a query without data asks again. So the alert of a view that polls
 * would come and go, and a screen reader would say it with each poll.
 */
export function useFailure({ error, failureReason, errorUpdateCount, isPending, isPlaceholderData }: Asked): unknown {
  const [last, setLast] = useState<unknown>(null);
  const isAskingAgain = errorUpdateCount > 0 && (isPending || isPlaceholderData);
  const failure = error ?? failureReason ?? (isAskingAgain ? last : null);
  if (failure !== last) setLast(failure);
  return failure;
}
