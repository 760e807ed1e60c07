import { ProviderRpcError, RPC_ERROR_CODES } from "../rpc-error.ts";
import { blockMethods } from "./block-methods.ts";
import type { ReadContext, RpcContext, RpcMethod, RpcMethods } from "./context.ts";
import { executionMethods } from "./execution-methods.ts";
import { feeMethods } from "./fee-methods.ts";
import { filterMethods } from "./filter-methods.ts";
import { logMethods } from "./log-methods.ts";
import { nodeMethods } from "./node-methods.ts";
import { Params } from "./params.ts";
import { stateMethods } from "./state-methods.ts";
import { submitMethods, transactionMethods } from "./transaction-methods.ts";

/** A request as it came, before its parameters are checked. */
export interface RpcRequest {
  readonly method: string;
  readonly params?: unknown;
}

const READ_METHODS = toMap<ReadContext>([
  nodeMethods,
  blockMethods,
  transactionMethods,
  stateMethods,
  executionMethods,
  logMethods,
  feeMethods,
]);
const OWNER_METHODS = toMap<RpcContext>([submitMethods, filterMethods]);

/** Answers one request of the process that opened the chain. @throws ProviderRpcError; ChainDamagedError if the data in the file is damaged. */
export async function dispatch(context: RpcContext, { method, params }: RpcRequest): Promise<unknown> {
  const handler = OWNER_METHODS.get(method) ?? getReadMethod(method);
  return handler(context, new Params(params));
}

/** Answers one request that only reads. @throws as {@link dispatch}. */
export async function dispatchRead(context: ReadContext, { method, params }: RpcRequest): Promise<unknown> {
  return getReadMethod(method)(context, new Params(params));
}

function getReadMethod(method: string): RpcMethod<ReadContext> {
  const handler = READ_METHODS.get(method);
  if (handler === undefined) {
    throw new ProviderRpcError(RPC_ERROR_CODES.methodNotFound, `the method ${method} does not exist/is not available`);
  }
  return handler;
}

function toMap<Context>(families: readonly RpcMethods<Context>[]): ReadonlyMap<string, RpcMethod<Context>> {
  return new Map(families.flatMap((family) => Object.entries(family)));
}
