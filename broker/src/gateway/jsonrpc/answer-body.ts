import { rpcBatchMax, rpcBatchRunningMax } from "../limits.ts";
import { callOperation, type RpcOptions } from "./call-operation.ts";
import { parseMessage, type RpcResponse, toErrorResponse } from "./message.ts";
import { toProtocolError } from "./rpc-error.ts";

type Answer = RpcResponse | readonly RpcResponse[] | undefined;

/** Answers a parsed body: a request or a batch (JSON-RPC 2.0, section 6). Undefined when there is nothing to say. */
export async function answerBody(body: unknown, options: RpcOptions): Promise<Answer> {
  if (!Array.isArray(body)) return answerMember(body, options);
  if (body.length === 0) return refuse("a batch has at least one member");
  if (body.length > rpcBatchMax) return refuse(`the batch has ${body.length} members, at most ${rpcBatchMax}`);
  const responses = await answerMembers(body, options);
  return responses.length === 0 ? undefined : responses;
}

/**
 * Members are started in order, a bounded number at once, so that publishes of one batch reach the broker in that order. Answers stand in
 * the order of the members.
 */
async function answerMembers(members: readonly unknown[], options: RpcOptions): Promise<readonly RpcResponse[]> {
  const responses: (RpcResponse | undefined)[] = Array.from({ length: members.length });
  const queue = members.entries();
  const runner = async (): Promise<void> => {
    for (const [index, member] of queue) responses[index] = await answerMember(member, options);
  };
  await Promise.all(Array.from({ length: Math.min(rpcBatchRunningMax, members.length) }, runner));
  return responses.filter((response) => response !== undefined);
}

function answerMember(member: unknown, options: RpcOptions): Promise<RpcResponse | undefined> {
  const message = parseMessage(member);
  return message.kind === "call" ? callOperation(message.call, options) : Promise.resolve(message.response);
}

function refuse(details: string): RpcResponse {
  return toErrorResponse(null, toProtocolError("invalidRequest", details));
}
