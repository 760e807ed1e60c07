import { BrokerError, errorCatalogue, type RpcErrorData, rpcBrokerFailureCode } from "@stele/wire";
import { withHints } from "../shared/failure.ts";
import { type RpcError, type RpcErrorName, rpcErrors } from "../shared/rpc/message.ts";

/** An error as docs/jsonrpc.md defines it: the data has the same form with every code. */
interface BrokerRpcError extends RpcError {
  readonly data: RpcErrorData;
}

const messages: ReadonlyMap<number, string> = new Map(
  Object.values(errorCatalogue).map(({ code, message }) => [code, message]),
);

/** A failure of the protocol itself; `data` carries the catalogue's number for a malformed request. */
export function toProtocolError(name: RpcErrorName, details: string): BrokerRpcError {
  return { ...rpcErrors[name], data: toData(errorCatalogue.parameterInvalid.code, details) };
}

/** A failure of an operation. `message` is the catalogue's or, for 200001 and 200000, JSON-RPC's own: clients can compare it. The details are in `data`. */
export function toRpcError(failure: BrokerError): BrokerRpcError {
  const data = toData(failure.code, withHints(failure));
  if (failure.code === errorCatalogue.parameterInvalid.code) return { ...rpcErrors.invalidParams, data };
  if (failure.code === errorCatalogue.unknown.code) return { ...rpcErrors.internalError, data };
  return { code: rpcBrokerFailureCode, message: messages.get(failure.code) ?? failure.message, data };
}

/** The error of a call that was not run, or whose result did not fit into the answer. */
export function toBusyError(details: string): BrokerRpcError {
  return toRpcError(new BrokerError("busy", { details }));
}

function toData(code: number, message: string): RpcErrorData {
  return { exceptionTypeName: "BrokerException", message, code };
}
