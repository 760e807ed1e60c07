import { BoundedLog } from "../../../lib/bounded-log.ts";
import type { Logger } from "../../../lib/logger.ts";
import {
  connectionLinesMax,
  connectionLinesPerSecondMax,
  repeatedLinesMax,
  repeatedLinesPerSecondMax,
} from "./limits.ts";

const clock = { monotonic: () => performance.now() };

/** The log of refused and ended connections of one protocol: a client can cause such lines at will. */
export function createConnectionLog(logger: Logger): BoundedLog {
  return new BoundedLog({
    logger,
    clock,
    lines: { atOnce: connectionLinesMax, perSecond: connectionLinesPerSecondMax },
  });
}

/** The log of one kind of event that clients can cause at will. All its lines are alike, so it needs few of them. */
export function createRepeatLog(logger: Logger): BoundedLog {
  return new BoundedLog({ logger, clock, lines: { atOnce: repeatedLinesMax, perSecond: repeatedLinesPerSecondMax } });
}
