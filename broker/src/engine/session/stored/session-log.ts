import { BoundedLog, type BoundedLogOptions } from "../../../lib/bounded-log.ts";

/** Maximum number of log lines of one kind about sessions in a burst; each second allows one more. */
const linesMax = 20;

/** Creates a log for troubles that every session may report, again and again. */
export function createSessionLog({ logger, clock }: Pick<BoundedLogOptions, "logger" | "clock">): BoundedLog {
  return new BoundedLog({ logger, clock, lines: { atOnce: linesMax, perSecond: 1 } });
}
