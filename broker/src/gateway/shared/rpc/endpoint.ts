import type { Logger } from "../../../lib/logger.ts";
import type { Caller, Protocol } from "../../../engine/access/caller.ts";
import type { RpcError, RpcErrorName, RpcOutcome, RpcParams, RpcText } from "./message.ts";

/** Most bytes of one answer, and the error in place of each result that would exceed it. */
export interface AnswerLimit {
  readonly bytesMax: number;
  readonly error: RpcError;
  /** Whether one result by itself may be longer. */
  readonly firstFits: boolean;
  /** Longest result that always fits: the result of a change is never withheld. */
  readonly shortResultBytesMax: number;
}

/** A method, what it is given, and who calls it. */
export interface RpcRequest {
  readonly method: string;
  readonly params: RpcParams;
  readonly caller: Caller;
  /** Header of the HTTP request, the same for each member of a batch. */
  readonly traceParent?: string | undefined;
  /** Asked when the turn of a call has come: whether its answer is still wanted. Always when left out. */
  readonly isWaiting?: (() => boolean) | undefined;
}

/** One JSON-RPC 2.0 endpoint: its methods, limits and error forms. */
export interface RpcEndpoint {
  /** Below the context segment. */
  readonly path: string;
  readonly protocol: Protocol;
  readonly logger: Logger;
  readonly answerLimit: AnswerLimit;
  /** Takes a request that needs no promise of its own, and calls back once, now or later. False for any other, which is to be called. */
  submit?(request: RpcRequest, onOutcome: (outcome: RpcOutcome | RpcText) => void): boolean;
  /** Runs a method. Failures that the client gets are outcomes. */
  call(request: RpcRequest): Promise<RpcOutcome | RpcText>;
  /** A failure of the protocol itself, in the form that this endpoint's errors have. */
  toProtocolError(name: RpcErrorName, details: string): RpcError;
  /** A refusal for want of memory. */
  toBusyError(details: string): RpcError;
}
