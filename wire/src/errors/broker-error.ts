import { type ErrorDefinition, type ErrorKind, type ErrorName, errorCatalogue } from "./catalogue.ts";

/** Optional parts of an error. `details` follows the catalogue's message after a colon. */
export interface BrokerErrorOptions {
  readonly details?: string;
  readonly hints?: readonly string[];
  /** How long to wait before repeating the call, in milliseconds, if known. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** The only error that crosses the broker's boundary. Callers test `code`, never text. */
export class BrokerError extends Error {
  readonly code: number;
  readonly kind: ErrorKind;
  readonly retry: boolean;
  readonly hints: readonly string[];
  readonly retryAfterMs: number | undefined;

  constructor(name: ErrorName, options: BrokerErrorOptions = {}) {
    const definition: ErrorDefinition = errorCatalogue[name];
    const message = options.details === undefined ? definition.message : `${definition.message}: ${options.details}`;
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "BrokerError";
    this.code = definition.code;
    this.kind = definition.kind;
    this.retry = definition.retry;
    this.hints = options.hints ?? [];
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** Whether `error` is a BrokerError with this name's code; without a name, any BrokerError. */
export function isBrokerError(error: unknown, name?: ErrorName): error is BrokerError {
  if (!(error instanceof BrokerError)) return false;
  return name === undefined || error.code === errorCatalogue[name].code;
}

/** Returns `error` itself if it is a BrokerError. Else returns an error 200000 with `error` as its cause, but without the text of `error`. */
export function toBrokerError(error: unknown): BrokerError {
  return error instanceof BrokerError ? error : new BrokerError("unknown", { cause: error });
}
