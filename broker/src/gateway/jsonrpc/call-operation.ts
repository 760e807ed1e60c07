import { type OperationName, operations } from "@stele/wire";
import type { Broker } from "../../engine/broker.ts";
import type { Logger } from "../../lib/logger.ts";
import { toFailure } from "../shared/failure.ts";
import { operationHandlers } from "../shared/operation-handlers.ts";
import { type RpcCall, type RpcResponse, toErrorResponse, toResultResponse } from "./message.ts";
import { toProtocolError, toRpcError } from "./rpc-error.ts";
import { RpcReader } from "./rpc-reader.ts";

/** The method that answers with the OpenRPC document. */
export const discoverMethod = "rpc.discover";

export interface RpcOptions {
  readonly broker: Broker;
  readonly logger: Logger;
  /** Answer of `rpc.discover`. */
  readonly openRpc: unknown;
}

/** Runs one call and answers its response; undefined for a notification, which is run but never answered. */
export async function callOperation(call: RpcCall, options: RpcOptions): Promise<RpcResponse | undefined> {
  const response = await answer(call, options);
  return call.id === undefined ? undefined : response;
}

async function answer(call: RpcCall, options: RpcOptions): Promise<RpcResponse> {
  const id = call.id ?? null;
  if (call.method === discoverMethod) return toResultResponse(id, options.openRpc);
  if (!isOperationName(call.method)) {
    return toErrorResponse(id, toProtocolError("methodNotFound", `${discoverMethod} lists the methods`));
  }
  try {
    return toResultResponse(id, await run(call.method, call.params, options.broker));
  } catch (error) {
    return toErrorResponse(id, toRpcError(toFailure(error, options.logger, { operation: call.method })));
  }
}

/** Booleans travel as strings (INTERFACE.md, JSON-RPC). */
async function run(name: OperationName, params: RpcCall["params"], broker: Broker): Promise<unknown> {
  const reader = new RpcReader(params, operations[name]);
  const result = await operationHandlers[name]({ broker, interfaceType: "JsonRPC" }, reader);
  return typeof result === "boolean" ? String(result) : result;
}

function isOperationName(method: string): method is OperationName {
  return Object.hasOwn(operations, method);
}
