import type { Logger } from "../../lib/logger.ts";

/** Calls `answer` for every caller. If a call throws, logs the error and continues with the next caller. */
export function answerAll<Callback>(
  callers: readonly Callback[],
  answer: (caller: Callback) => void,
  logger: Logger,
): void {
  for (const caller of callers) {
    try {
      answer(caller);
    } catch (error) {
      logger.error("callback of a publish threw an error", { error });
    }
  }
}
