import type { FastifyInstance } from "fastify";
import type { FindHolding } from "../in-flight/in-flight.ts";
import { rpcAnswerBytesMax, rpcShortResultBytesMax } from "../limits.ts";
import { registerRpc } from "../shared/rpc/rpc-plugin.ts";
import { callOperation, type JsonRpcOptions, submitPublish } from "./call-operation.ts";
import { toBusyError, toProtocolError } from "./rpc-error.ts";

/** The broker's operations as JSON-RPC 2.0 at POST `/jsonrpc`. */
export function registerJsonRpc(app: FastifyInstance, options: JsonRpcOptions, findHolding: FindHolding): void {
  registerRpc(
    app,
    {
      path: "/jsonrpc",
      protocol: "JSON-RPC",
      logger: options.logger,
      isReadOnly: false,
      answerLimit: {
        bytesMax: rpcAnswerBytesMax,
        firstFits: true,
        shortResultBytesMax: rpcShortResultBytesMax,
        error: toBusyError(
          `the answer to the batch is over ${rpcAnswerBytesMax} bytes; this member was not run, or it changed nothing; ask again in a smaller batch`,
        ),
      },
      submit: (request, onOutcome) => {
        if (request.method !== "publish") return false;
        submitPublish(request, onOutcome, options);
        return true;
      },
      call: (request) => callOperation(request, options),
      toProtocolError,
      toBusyError,
    },
    findHolding,
  );
}
