import { ProviderRpcError, RPC_ERROR_CODES } from "../rpc-error.ts";
import { blockMethods } from "./block-methods.ts";
import type { RpcContext, RpcMethod } from "./context.ts";
import { executionMethods } from "./execution-methods.ts";
import { feeMethods } from "./fee-methods.ts";
import { logMethods } from "./log-methods.ts";
import { nodeMethods } from "./node-methods.ts";
import { Params } from "./params.ts";
import { stateMethods } from "./state-methods.ts";
import { transactionMethods } from "./transaction-methods.ts";

const METHODS: ReadonlyMap<string, RpcMethod> = new Map(
  [nodeMethods, blockMethods, transactionMethods, stateMethods, executionMethods, logMethods, feeMethods].flatMap(
    (family) => Object.entries(family),
  ),
);

/** Answers one request, or throws a ProviderRpcError. */
export async function dispatch(context: RpcContext, method: string, params: unknown): Promise<unknown> {
  const handler = METHODS.get(method);
  if (handler === undefined) {
    throw new ProviderRpcError(RPC_ERROR_CODES.methodNotFound, `the method ${method} does not exist/is not available`);
  }
  return handler(context, new Params(params));
}
