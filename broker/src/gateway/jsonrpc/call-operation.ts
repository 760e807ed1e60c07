import { operations } from "@stele/wire";
import { withTraceParent } from "../../domain/trace-parent.ts";
import type { Broker } from "../../engine/broker.ts";
import type { Logger } from "../../lib/logger.ts";
import { parameterError, toFailure } from "../shared/failure.ts";
import { type NonPublishOperation, readPublishCall } from "../shared/operation-handlers.ts";
import { renderSendResult } from "../shared/results.ts";
import type { OperationRunner } from "../shared/run-operation.ts";
import type { RpcRequest } from "../shared/rpc/endpoint.ts";
import type { RpcOutcome, RpcText } from "../shared/rpc/message.ts";
import { toProtocolError, toRpcError } from "./rpc-error.ts";
import { RpcReader } from "./rpc-reader.ts";

/** The method that answers with the OpenRPC document. */
const discoverMethod = "rpc.discover";

export interface JsonRpcOptions {
  readonly broker: Broker;
  readonly logger: Logger;
  /** Answer of `rpc.discover`. */
  readonly openRpc: () => unknown;
  readonly runner: OperationRunner;
  readonly extensionPrefix: string;
}

/** Publishes. Calls `onOutcome` at once if the call is refused at once. */
export function submitPublish(
  { params, caller, traceParent, hasKeyHeader }: RpcRequest,
  onOutcome: (outcome: RpcOutcome | RpcText) => void,
  { broker, logger, extensionPrefix }: Pick<JsonRpcOptions, "broker" | "logger" | "extensionPrefix">,
): void {
  const refuse = (error: unknown): void => {
    onOutcome({ error: toRpcError(toFailure(error, logger, { operation: "publish" })) });
  };
  try {
    const call = readPublishCall(new RpcReader(params, operations.publish));
    // Without this error, the client would believe that its key prevents repeats.
    if (hasKeyHeader === true && call.key === undefined)
      throw parameterError("the key of a publish is the parameter idempotencyKey here, not the header Idempotency-Key");
    const extensions = withTraceParent(call.extensions, traceParent, extensionPrefix);
    broker.submit(caller, { ...call, extensions }, (outcome) => {
      if (outcome.status === "REFUSED") refuse(outcome.error);
      else onOutcome({ json: renderSendResult(outcome) });
    });
  } catch (error) {
    refuse(error);
  }
}

/** Runs any method except `publish`. */
export async function callOperation(call: RpcRequest, options: JsonRpcOptions): Promise<RpcOutcome> {
  const { method } = call;
  if (method === discoverMethod) return { result: options.openRpc() };
  if (!isNonPublishOperation(method)) {
    return { error: toProtocolError("methodNotFound", `${discoverMethod} lists the methods`) };
  }
  try {
    return { result: await run(method, call, options) };
  } catch (error) {
    return { error: toRpcError(toFailure(error, options.logger, { operation: method })) };
  }
}

/** Runs an operation. Booleans become strings (docs/jsonrpc.md). */
async function run(
  name: NonPublishOperation,
  { params, caller, isWaiting }: RpcRequest,
  { broker, runner }: JsonRpcOptions,
): Promise<unknown> {
  const reader = new RpcReader(params, operations[name]);
  const result = await runner.run(name, { broker, format: "JsonRPC", reader, caller, isWaiting });
  return typeof result === "boolean" ? String(result) : result;
}

function isNonPublishOperation(method: string): method is NonPublishOperation {
  return method !== "publish" && Object.hasOwn(operations, method);
}
