/** What the client knows about a failure. */
export interface SteleErrorOptions {
  readonly code?: number | undefined;
  /** Whether the same call can succeed later. */
  readonly retry: boolean;
  /** How long to wait before repeating the call, in milliseconds, if the broker says so. */
  readonly retryAfterMs?: number | undefined;
  readonly hints?: readonly string[] | undefined;
  /** Whether the call surely changed nothing. */
  readonly wasRefused?: boolean;
  readonly cause?: unknown;
}

/**
 * The error of a failed call. Test `code`, a number of the error catalogue (docs/errors.md), never the text. Two cases throw something else: an aborted signal
 * throws its reason, and some wrong arguments throw TypeError.
 */
export class SteleError extends Error {
  /** Undefined if no broker answered: the connection failed, the call took too long, or the answer was not a broker's. */
  readonly code: number | undefined;
  /** Whether the same call can succeed later without changes. A repeated publish needs a key (`once`) to be safe. */
  readonly retry: boolean;
  readonly retryAfterMs: number | undefined;
  /** Advice for people on what to do. */
  readonly hints: readonly string[];
  /** True if surely no try changed anything. Then the call may be repeated even without `once`. */
  readonly wasRefused: boolean;

  constructor(message: string, options: SteleErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "SteleError";
    this.code = options.code;
    this.retry = options.retry;
    this.retryAfterMs = options.retryAfterMs;
    this.hints = options.hints ?? [];
    this.wasRefused = options.wasRefused ?? false;
  }
}

/** Code of a publish whose outcome the broker could not learn in time. */
export const transactionTimeout = 200201;
const busy = 200300;
const overQuota = 200301;

/** Codes after which the same call can succeed later, as in the catalogue. The client uses them if an answer does not say whether a retry can help. */
export const retryableCodes: ReadonlySet<number> = new Set([
  100304,
  100506,
  transactionTimeout,
  200202,
  200205,
  200207,
  200208,
  200209,
  busy,
  overQuota,
]);

/** Codes from 200,000 up that still mean that the broker refused the call: an invalid parameter (200001), an unknown group (200211), busy, or over quota. */
const refusalCodes: ReadonlySet<number> = new Set([200001, 200211, busy, overQuota]);
const serviceCodesFrom = 200_000;
/** Proxies also answer with JSON that has a code and a message. Their codes are shorter: statuses of HTTP or of gRPC. */
const codesFrom = 100_000;

/** Whether a value of an answer is a code of the catalogue, or of the catalogue of a newer broker. */
export function isBrokerCode(value: unknown): value is number {
  return typeof value === "number" && value >= codesFrom;
}

/** Whether a call that the broker answered with this code surely changed nothing. Orders use it for the `error` of one result. */
export function isRefusal(code: number): boolean {
  return code < serviceCodesFrom || refusalCodes.has(code);
}

/** The error for a code that the broker answered. */
export function toFailure(
  { code, message }: { readonly code: number; readonly message: string },
  options: Partial<SteleErrorOptions> = {},
): SteleError {
  return new SteleError(message, {
    code,
    wasRefused: isRefusal(code),
    ...options,
    retry: options.retry ?? retryableCodes.has(code),
  });
}

/** The same error with `wasRefused` false, because an earlier try of the call may have taken effect. */
export function withUnknownOutcome(error: SteleError): SteleError {
  if (!error.wasRefused) return error;
  const { message, code, retry, retryAfterMs, hints, cause } = error;
  return new SteleError(message, { code, retry, retryAfterMs, hints, cause, wasRefused: false });
}

/** The error for an answer that does not follow the broker's interface. */
export function toProtocolError(url: string, detail: string): SteleError {
  return new SteleError(`${url} does not answer like a broker: ${detail}`, { retry: false });
}
