/**
 * How far an unanswered request got.
 * `unreached`: nobody processed it: there was no connection, or the server refused it unread (rate limit, missing key).
 * `unknown`: somebody may have processed it.
 * `too-large`: the endpoint refused it for its size.
 * `answer-too-long`: its answer exceeds a limit of ours or of the endpoint.
 */
export type Reach = "unreached" | "unknown" | "too-large" | "answer-too-long";

export interface EndpointErrorOptions {
  readonly reach: Reach;
  /** The pause that the endpoint requests, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** Whether only a rate limit kept the request from being processed; false if left out. */
  readonly isOverLimit?: boolean | undefined;
}

/** A request got no usable answer. The message names the endpoint without the secrets of its address. */
export class EndpointError extends Error {
  override readonly name = "EndpointError";
  readonly reach: Reach;
  readonly retryAfterMs: number | undefined;
  readonly isOverLimit: boolean;

  constructor(message: string, { reach, retryAfterMs, isOverLimit = false }: EndpointErrorOptions) {
    super(message);
    this.reach = reach;
    this.retryAfterMs = retryAfterMs;
    this.isOverLimit = isOverLimit;
  }
}

/** The error object of an endpoint's answer (JSON-RPC 2.0, section 5.1). */
export class RpcAnswerError extends Error {
  override readonly name = "RpcAnswerError";
  readonly code: number;
  readonly data: unknown;
  /** The method of the request, if the error is the answer to one request. */
  readonly method: string | undefined;

  constructor(message: string, { code, data, method }: Pick<RpcAnswerError, "code"> & Partial<RpcAnswerError>) {
    super(message);
    this.code = code;
    this.data = data;
    this.method = method;
  }
}
