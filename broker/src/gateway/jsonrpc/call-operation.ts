import { type OperationName, operations } from "@stele/wire";
import type { Broker } from "../../engine/broker.ts";
import type { Logger } from "../../lib/logger.ts";
import { toFailure } from "../shared/failure.ts";
import type { Caller, OperationRunner } from "../shared/run-operation.ts";
import type { RpcOutcome, RpcParams } from "../shared/rpc/message.ts";
import { toProtocolError, toRpcError } from "./rpc-error.ts";
import { RpcReader } from "./rpc-reader.ts";

/** The method that answers with the OpenRPC document. */
const discoverMethod = "rpc.discover";

export interface JsonRpcOptions {
  readonly broker: Broker;
  readonly logger: Logger;
  /** Answer of `rpc.discover`. */
  readonly openRpc: unknown;
  readonly runner: OperationRunner;
}

/** A call of one method. */
export interface MethodCall {
  readonly method: string;
  readonly params: RpcParams;
  readonly caller: Caller;
}

/** Runs one method. */
export async function callOperation(call: MethodCall, options: JsonRpcOptions): Promise<RpcOutcome> {
  const { method } = call;
  if (method === discoverMethod) return { result: options.openRpc };
  if (!isOperationName(method)) {
    return { error: toProtocolError("methodNotFound", `${discoverMethod} lists the methods`) };
  }
  try {
    return { result: await run(method, call, options) };
  } catch (error) {
    return { error: toRpcError(toFailure(error, options.logger, { operation: method })) };
  }
}

/** Booleans travel as strings (INTERFACE.md, JSON-RPC). */
async function run(
  name: OperationName,
  { params, caller }: MethodCall,
  { broker, runner }: JsonRpcOptions,
): Promise<unknown> {
  const reader = new RpcReader(params, operations[name]);
  const result = await runner.run(name, { broker, interfaceType: "JsonRPC", reader, caller });
  return typeof result === "boolean" ? String(result) : result;
}

function isOperationName(method: string): method is OperationName {
  return Object.hasOwn(operations, method);
}
