import type { Logger } from "../../lib/logger.ts";

/** Calls every caller back, also those behind one that throws: what is wrong with one of them is told in the log. */
export function answerAll<Callback>(
  callers: readonly Callback[],
  answer: (caller: Callback) => void,
  logger: Logger,
): void {
  for (const caller of callers) {
    try {
      answer(caller);
    } catch (error) {
      logger.error("caller failed to take its answer", { error });
    }
  }
}
