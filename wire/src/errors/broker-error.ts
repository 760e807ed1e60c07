import { type ErrorDefinition, type ErrorKind, type ErrorName, errorCatalogue } from "./catalogue.ts";

/** What may be said beyond the catalogue's message; `details` is joined to it after a colon. */
export interface BrokerErrorOptions {
  readonly details?: string;
  readonly hints?: readonly string[];
  readonly cause?: unknown;
}

/** The one error that crosses the broker's edges. Callers test `code`, never text. */
export class BrokerError extends Error {
  readonly code: number;
  readonly kind: ErrorKind;
  readonly retry: boolean;
  readonly hints: readonly string[];

  constructor(name: ErrorName, options: BrokerErrorOptions = {}) {
    const definition: ErrorDefinition = errorCatalogue[name];
    const message = options.details === undefined ? definition.message : `${definition.message}: ${options.details}`;
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "BrokerError";
    this.code = definition.code;
    this.kind = definition.kind;
    this.retry = definition.retry;
    this.hints = options.hints ?? [];
  }
}

/** True when `error` is a BrokerError with this name's code. */
export function isBrokerError(error: unknown, name?: ErrorName): error is BrokerError {
  if (!(error instanceof BrokerError)) return false;
  return name === undefined || error.code === errorCatalogue[name].code;
}

/** `error` itself when it is a BrokerError, else error 200000 with `error` as its cause and nothing of its text. */
export function toBrokerError(error: unknown): BrokerError {
  return error instanceof BrokerError ? error : new BrokerError("unknown", { cause: error });
}
