import { rpcBatchMax, rpcBatchRunningMax } from "../../limits.ts";
import type { RpcEndpoint } from "./endpoint.ts";
import { parseMessage, type RpcCall, type RpcResponse, toResponse } from "./message.ts";

type Answer = RpcResponse | readonly RpcResponse[] | undefined;

/** Answers a parsed body: a request or a batch (JSON-RPC 2.0, section 6). Undefined when there is nothing to say. */
export async function answerBody(body: unknown, endpoint: RpcEndpoint): Promise<Answer> {
  if (!Array.isArray(body)) return answerMember(body, endpoint);
  if (body.length === 0) return refuse("a batch has at least one member", endpoint);
  if (body.length > rpcBatchMax) {
    return refuse(`the batch has ${body.length} members, at most ${rpcBatchMax}`, endpoint);
  }
  const responses = await answerMembers(body, endpoint);
  return responses.length === 0 ? undefined : responses;
}

/**
 * Members are started in order, a bounded number at once, so that publishes of one batch reach the broker in that order. Answers stand in
 * the order of the members.
 */
async function answerMembers(members: readonly unknown[], endpoint: RpcEndpoint): Promise<readonly RpcResponse[]> {
  const responses: (RpcResponse | undefined)[] = Array.from({ length: members.length });
  const queue = members.entries();
  const runner = async (): Promise<void> => {
    for (const [index, member] of queue) responses[index] = await answerMember(member, endpoint);
  };
  await Promise.all(Array.from({ length: Math.min(rpcBatchRunningMax, members.length) }, runner));
  return responses.filter((response) => response !== undefined);
}

async function answerMember(member: unknown, endpoint: RpcEndpoint): Promise<RpcResponse | undefined> {
  const message = parseMessage(member);
  if (message.kind === "call") return answerCall(message.call, endpoint);
  return toResponse(message.id, { error: endpoint.toProtocolError("invalidRequest", message.details) });
}

/** A notification is run but never answered. */
async function answerCall({ id, method, params }: RpcCall, endpoint: RpcEndpoint): Promise<RpcResponse | undefined> {
  const outcome = await endpoint.call(method, params);
  return id === undefined ? undefined : toResponse(id, outcome);
}

function refuse(details: string, endpoint: RpcEndpoint): RpcResponse {
  return toResponse(null, { error: endpoint.toProtocolError("invalidRequest", details) });
}
