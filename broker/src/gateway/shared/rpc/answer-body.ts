import { rpcBatchMax, rpcBatchRunningMax } from "../../limits.ts";
import { AnswerBudget } from "./answer-budget.ts";
import type { RpcEndpoint } from "./endpoint.ts";
import { parseMessage, type RpcCall, toResponse } from "./message.ts";

interface Context {
  readonly endpoint: RpcEndpoint;
  readonly budget: AnswerBudget;
}

/**
 * Answers a parsed body, a request or a batch (JSON-RPC 2.0, section 6), with the JSON text of the response. Undefined when there is nothing
 * to say.
 */
export async function answerBody(body: unknown, endpoint: RpcEndpoint): Promise<string | undefined> {
  const context = { endpoint, budget: new AnswerBudget(endpoint.answerLimit) };
  if (!Array.isArray(body)) return answerMember(body, context);
  if (body.length === 0) return refuse("a batch has at least one member", endpoint);
  if (body.length > rpcBatchMax) {
    return refuse(`the batch has ${body.length} members, at most ${rpcBatchMax}`, endpoint);
  }
  const responses = await answerMembers(body, context);
  return responses.length === 0 ? undefined : `[${responses.join(",")}]`;
}

/**
 * Members are started in order, a bounded number at once, so that publishes of one batch reach the broker in that order. Answers stand in
 * the order of the members.
 */
async function answerMembers(members: readonly unknown[], context: Context): Promise<readonly string[]> {
  const responses: (string | undefined)[] = Array.from({ length: members.length });
  const queue = members.entries();
  const runner = async (): Promise<void> => {
    for (const [index, member] of queue) responses[index] = await answerMember(member, context);
  };
  await Promise.all(Array.from({ length: Math.min(rpcBatchRunningMax, members.length) }, runner));
  return responses.filter((response) => response !== undefined);
}

async function answerMember(member: unknown, context: Context): Promise<string | undefined> {
  const message = parseMessage(member);
  if (message.kind === "call") return answerCall(message.call, context);
  const error = context.endpoint.toProtocolError("invalidRequest", message.details);
  return JSON.stringify(toResponse(message.id, { error }));
}

/** A notification is run but never answered. */
async function answerCall({ id, method, params }: RpcCall, { endpoint, budget }: Context): Promise<string | undefined> {
  const outcome = budget.findRefusal() ?? (await endpoint.call(method, params));
  return id === undefined ? undefined : budget.render(id, outcome);
}

function refuse(details: string, endpoint: RpcEndpoint): string {
  return JSON.stringify(toResponse(null, { error: endpoint.toProtocolError("invalidRequest", details) }));
}
