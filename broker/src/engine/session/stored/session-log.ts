import { BoundedLog, type BoundedLogOptions } from "../../../lib/bounded-log.ts";

/** Log lines of one kind about sessions that may come at once; one more is allowed each second. */
const linesMax = 20;

/** A log of troubles that come once for each session, again and again. */
export function createSessionLog({ logger, clock }: Pick<BoundedLogOptions, "logger" | "clock">): BoundedLog {
  return new BoundedLog({ logger, clock, lines: { atOnce: linesMax, perSecond: 1 } });
}
