import { type BrokerError, errorCatalogue, type RpcErrorData, rpcBrokerFailureCode } from "@stele/wire";

/** `error` of a response. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: RpcErrorData;
}

/** Codes of JSON-RPC 2.0, section 5.1, and the one for failures of the broker (INTERFACE.md, Errors). */
const rpcCodes = {
  parseError: { code: -32700, message: "Parse error" },
  invalidRequest: { code: -32600, message: "Invalid Request" },
  methodNotFound: { code: -32601, message: "Method not found" },
  invalidParams: { code: -32602, message: "Invalid params" },
  internalError: { code: -32603, message: "Internal error" },
} as const;

const messages: ReadonlyMap<number, string> = new Map(
  Object.values(errorCatalogue).map(({ code, message }) => [code, message]),
);

/** A failure of the protocol itself; `data` carries the catalogue's number for a malformed request. */
export function toProtocolError(name: keyof typeof rpcCodes, details: string): RpcError {
  return { ...rpcCodes[name], data: toData(errorCatalogue.parameterInvalid.code, details) };
}

/** A failure of an operation. `message` is the catalogue's, so that it can be compared; the details are in `data`. */
export function toRpcError(failure: BrokerError): RpcError {
  const data = toData(failure.code, failure.message);
  if (failure.code === errorCatalogue.parameterInvalid.code) return { ...rpcCodes.invalidParams, data };
  if (failure.code === errorCatalogue.unknown.code) return { ...rpcCodes.internalError, data };
  return { code: rpcBrokerFailureCode, message: messages.get(failure.code) ?? failure.message, data };
}

function toData(code: number, message: string): RpcErrorData {
  return { exceptionTypeName: "BrokerException", message, code };
}
