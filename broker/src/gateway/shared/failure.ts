import { BrokerError, errorCatalogue, toBrokerError } from "@stele/wire";
import type { Logger } from "../../lib/logger.ts";

/** The error for a parameter or request that cannot be read (200001). */
export function parameterError(details: string, cause?: unknown): BrokerError {
  return new BrokerError("parameterInvalid", cause === undefined ? { details } : { details, cause });
}

/**
 * Converts an error to the one that the client gets, and logs it once: an unknown error as a defect of the broker, with its cause; a transaction
 * that the chain did not execute (200202) as a warning; every other failure, such as one of the caller, at level debug.
 */
export function toFailure(error: unknown, logger: Logger, fields: { readonly operation: string }): BrokerError {
  const failure = toBrokerError(error);
  const { code, message: reason } = failure;
  if (code === errorCatalogue.unknown.code)
    logger.error("request failed", { ...fields, error: failure.cause ?? failure });
  else if (failure.kind === "internal") logger.warn("request failed", { ...fields, code, reason });
  else logger.debug("request refused", { ...fields, code, reason });
  return failure;
}
