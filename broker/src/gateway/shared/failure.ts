import { BrokerError, errorCatalogue, toBrokerError } from "@stele/wire";
import { BoundedLog } from "../../lib/bounded-log.ts";
import type { Logger } from "../../lib/logger.ts";

/** Maximum number of log lines about failed transactions in a burst: busy publishers cause one after another while the chain refuses transactions. */
const failedLinesMax = 100;
/** Number of further lines about failed transactions that each second allows. */
const failedLinesPerSecondMax = 1;
const failedTransactions = new WeakMap<Logger, BoundedLog>();

/** The error for a parameter or request that cannot be read (200001). */
export function parameterError(details: string, cause?: unknown): BrokerError {
  return new BrokerError("parameterInvalid", cause === undefined ? { details } : { details, cause });
}

/** The message of a failure with its hints, for the protocols that have no place of their own for hints. */
export function withHints({ message, hints }: BrokerError): string {
  return [message, ...hints].join(". ");
}

/**
 * Converts an error to the one that the client gets, and logs it once. An unknown error is a defect of the broker: logs it as an error, with its cause. Logs a
 * transaction that the chain did not execute (200202) as a warning, at a limited rate. Logs every other failure, such as one of the caller, at level debug.
 */
export function toFailure(error: unknown, logger: Logger, fields: { readonly operation: string }): BrokerError {
  const failure = toBrokerError(error);
  const { code, message: reason } = failure;
  if (code === errorCatalogue.unknown.code)
    logger.error("request failed", { ...fields, error: failure.cause ?? failure });
  else if (failure.kind === "internal") repeatLogOf(logger).warn("request failed", { ...fields, code, reason });
  else logger.debug("request refused", { ...fields, code, reason });
  return failure;
}

function repeatLogOf(logger: Logger): BoundedLog {
  const log = failedTransactions.get(logger) ?? createLog(logger);
  failedTransactions.set(logger, log);
  return log;
}

function createLog(logger: Logger): BoundedLog {
  const lines = { atOnce: failedLinesMax, perSecond: failedLinesPerSecondMax };
  return new BoundedLog({ logger, clock: { monotonic: () => performance.now() }, lines });
}
