import type { Logger } from "../../../lib/logger.ts";
import type { Caller, Protocol } from "../../../engine/access/caller.ts";
import type { RpcError, RpcErrorName, RpcOutcome, RpcParams, RpcText } from "./message.ts";

/** Maximum number of bytes of one answer, and the error in place of each result that would exceed it. */
export interface AnswerLimit {
  readonly bytesMax: number;
  readonly error: RpcError;
  /** Whether one result by itself may be longer. */
  readonly firstFits: boolean;
  /** Results up to this length always fit, so that the result of a change is never withheld. */
  readonly shortResultBytesMax: number;
}

/** A method, its parameters and its caller. */
export interface RpcRequest {
  readonly method: string;
  readonly params: RpcParams;
  readonly caller: Caller;
  /** `traceparent` header of the HTTP request, the same for each member of a batch. */
  readonly traceParent?: string | undefined;
  /** Whether the HTTP request has the header `Idempotency-Key`. */
  readonly hasKeyHeader?: boolean;
  /** Called when the call's turn comes: is the answer still wanted? Left out if it always is. */
  readonly isWaiting?: (() => boolean) | undefined;
}

/** One JSON-RPC 2.0 endpoint: its methods, limits and error forms. */
export interface RpcEndpoint {
  /** Below the base path. */
  readonly path: string;
  readonly protocol: Protocol;
  readonly logger: Logger;
  readonly answerLimit: AnswerLimit;
  /** No method changes anything, so notifications do not run: nobody gets their results. */
  readonly isReadOnly: boolean;
  /** Takes a request that needs no promise, and calls `onOutcome` once, now or later. Returns false for any other request; use `call` for it. */
  submit?(request: RpcRequest, onOutcome: (outcome: RpcOutcome | RpcText) => void): boolean;
  /** Runs a method. Resolves with an outcome even for a failure that the client gets. */
  call(request: RpcRequest): Promise<RpcOutcome | RpcText>;
  /** A protocol error in the form of this endpoint's errors. */
  toProtocolError(name: RpcErrorName, details: string): RpcError;
  /** The error for a request that is refused for lack of memory. */
  toBusyError(details: string): RpcError;
}
