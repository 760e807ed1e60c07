import type { Logger } from "../../lib/logger.ts";

/** Calls every callback. If one throws, logs the error and continues with the next. */
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
