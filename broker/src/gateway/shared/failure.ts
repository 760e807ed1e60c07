import { BrokerError, toBrokerError } from "@stele/wire";
import type { Logger } from "../../lib/logger.ts";

/** A parameter or request that cannot be read (200001). */
export function parameterError(details: string, cause?: unknown): BrokerError {
  return new BrokerError("parameterInvalid", cause === undefined ? { details } : { details, cause });
}

/**
 * The error that a client gets. An internal failure is logged here, once, with its cause; a failure of the caller only at level debug.
 */
export function toFailure(error: unknown, logger: Logger, fields: { readonly operation: string }): BrokerError {
  const failure = toBrokerError(error);
  if (failure.kind === "internal") logger.error("request failed", { ...fields, error: failure.cause ?? failure });
  else logger.debug("request refused", { ...fields, code: failure.code, reason: failure.message });
  return failure;
}
