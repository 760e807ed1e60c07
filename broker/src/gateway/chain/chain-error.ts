import { quote } from "@stele/wire";
import type { Logger } from "../../lib/logger.ts";
import { toFailure } from "../shared/failure.ts";
import { type RpcError, type RpcErrorName, rpcErrors } from "../shared/rpc/message.ts";

/** A refusal by a provider, in the shape of EIP-1193. */
interface ProviderError extends Error {
  readonly code: number;
  readonly data?: unknown;
}

/** geth's error for an answer over its limit. */
export const responseTooLarge: RpcError = { code: -32003, message: "response too large" };

/** Code of EIP-1474 for a request over a limit; clients try again later. */
const limitExceededCode = -32005;

/** A failure of the protocol. Chain tools show `message` alone, so it holds the details. */
export function toProtocolError(name: RpcErrorName, details: string): RpcError {
  const { code, message } = rpcErrors[name];
  return { code, message: `${message}: ${details}` };
}

/** The refusal of a method. Its message begins with geth's words, by which libraries recognise that the method is missing. */
export function toMethodRefusal(method: string): RpcError {
  const message = `the method ${quote(method)} does not exist/is not available: this endpoint is read-only`;
  return { code: rpcErrors.methodNotFound.code, message };
}

export const tooBusy: RpcError = {
  code: limitExceededCode,
  message: "limit exceeded: too many calls of the chain are waiting, try later",
};

/**
 * A refusal by the provider or by the broker keeps its code, and its data if there are any. Any other error is a defect, and its text is not shown to
 * the client.
 */
export function toChainError(error: unknown, { method, logger }: { readonly method: string; readonly logger: Logger }) {
  if (!isProviderError(error)) {
    return toProtocolError("internalError", toFailure(error, logger, { operation: method }).message);
  }
  const { code, message, data } = error;
  if (code === rpcErrors.internalError.code) logger.error("chain call failed", { method, error });
  else logger.debug("chain call refused", { method, code, reason: message });
  return data === undefined ? { code, message } : { code, message, data };
}

function isProviderError(error: unknown): error is ProviderError {
  return error instanceof Error && "code" in error && Number.isInteger(error.code);
}
