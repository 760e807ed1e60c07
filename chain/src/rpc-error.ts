import type { ErrorMessage } from "./messages.ts";

/** Codes of JSON-RPC 2.0, those that geth adds, and `disconnected` of EIP-1193. */
export const RPC_ERROR_CODES = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  server: -32000,
  responseTooLarge: -32003,
  limitExceeded: -32005,
  executionReverted: 3,
  disconnected: 4900,
} as const;

/** An error of the chain in the shape of EIP-1193: geth's code and message, and revert data if there is any. */
export class ProviderRpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, options: { readonly data?: unknown; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ProviderRpcError";
    this.code = code;
    this.data = options.data;
  }
}

export function serverError(message: string): ProviderRpcError {
  return new ProviderRpcError(RPC_ERROR_CODES.server, message);
}

export function invalidParams(message: string): ProviderRpcError {
  return new ProviderRpcError(RPC_ERROR_CODES.invalidParams, message);
}

/** A search for logs took too long: a client that knows the code searches fewer blocks. */
export function searchTooSlow(timeMs: number): ProviderRpcError {
  const message = `query timeout exceeded (${timeMs}ms); ask for fewer blocks`;
  return new ProviderRpcError(RPC_ERROR_CODES.limitExceeded, message);
}

/** Converts an error for a message to another thread, since such a message loses classes. */
export function toErrorMessage(error: unknown): ErrorMessage {
  if (error instanceof ProviderRpcError) {
    return { code: error.code, message: error.message, ...(error.data === undefined ? {} : { data: error.data }) };
  }
  return { code: RPC_ERROR_CODES.internal, message: error instanceof Error ? error.message : String(error) };
}

export function fromErrorMessage({ code, message, data }: ErrorMessage): ProviderRpcError {
  return new ProviderRpcError(code, message, { data });
}
