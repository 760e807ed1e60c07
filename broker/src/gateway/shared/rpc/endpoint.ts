import type { Logger } from "../../../lib/logger.ts";
import type { RpcError, RpcErrorName, RpcOutcome, RpcParams, RpcText } from "./message.ts";

/** One place where JSON-RPC 2.0 is spoken, and what the protocol leaves to it. */
export interface RpcEndpoint {
  /** Below the context segment. */
  readonly path: string;
  readonly logger: Logger;
  /** Most bytes of one answer, and the error in place of each result that would exceed it; without it, there is no bound. */
  readonly answerLimit?: { readonly bytesMax: number; readonly error: RpcError };
  /** Runs a method. Failures that are to be told are outcomes. */
  call(method: string, params: RpcParams): Promise<RpcOutcome | RpcText>;
  /** A failure of the protocol itself, in the form that this endpoint's errors have. */
  toProtocolError(name: RpcErrorName, details: string): RpcError;
}
