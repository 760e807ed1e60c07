import type { FastifyInstance } from "fastify";
import { registerRpc } from "../shared/rpc/rpc-plugin.ts";
import { callOperation, type JsonRpcOptions } from "./call-operation.ts";
import { toProtocolError } from "./rpc-error.ts";

/** The broker's operations as JSON-RPC 2.0 at POST `/jsonrpc`. */
export function registerJsonRpc(app: FastifyInstance, options: JsonRpcOptions): void {
  registerRpc(app, {
    path: "/jsonrpc",
    logger: options.logger,
    call: (method, params) => callOperation(method, params, options),
    toProtocolError,
  });
}
