/**
 * How far a request came that was not answered.
 * `unreached`: surely nobody took it: there was no connection, or it was turned away unread (a rate limit, a missing key).
 * `unknown`: it may have been carried out.
 * `too-large`: it was refused for its length.
 * `answer-too-long`: its answer is longer than is taken.
 */
export type Reach = "unreached" | "unknown" | "too-large" | "answer-too-long";

export interface EndpointErrorOptions {
  readonly reach: Reach;
  /** How long the endpoint asks to be left alone. */
  readonly retryAfterMs?: number | undefined;
}

/** An endpoint gave no answer. The message names the endpoint as it may be shown, and shows no secret of its address. */
export class EndpointError extends Error {
  override readonly name = "EndpointError";
  readonly reach: Reach;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { reach, retryAfterMs }: EndpointErrorOptions) {
    super(message);
    this.reach = reach;
    this.retryAfterMs = retryAfterMs;
  }
}

/** What an endpoint answered in the place of a result (JSON-RPC 2.0, section 5.1). */
export class RpcAnswerError extends Error {
  override readonly name = "RpcAnswerError";
  readonly code: number;
  readonly data: unknown;

  constructor(message: string, { code, data }: { readonly code: number; readonly data?: unknown }) {
    super(message);
    this.code = code;
    this.data = data;
  }
}
