import type { Caller } from "../../../engine/access/caller.ts";
import { AnswerStream } from "../../in-flight/answer-stream.ts";
import type { Holding } from "../../in-flight/memory-budget.ts";
import { rpcBatchMax, smallBytesMax } from "../../limits.ts";
import { AnswerBudget } from "./answer-budget.ts";
import { BatchRun } from "./batch-run.ts";
import type { RpcEndpoint } from "./endpoint.ts";
import { parseMessage, type RpcCall, type RpcError, toResponse } from "./message.ts";
import type { RunningMembers } from "./running-members.ts";
import type { Slices } from "./slices.ts";

export interface AnswerOptions {
  readonly endpoint: RpcEndpoint;
  readonly slices: Slices;
  readonly runningMembers: RunningMembers;
  readonly bodyBytes: number;
  readonly caller: Caller;
  /** `traceparent` header of the request. */
  readonly traceParent: string | undefined;
  readonly hasKeyHeader: boolean;
  readonly findHolding: () => Holding;
  /** Called with each error that the answer gives for a call: either the operation failed, or its result does not fit. Not called for an invalid request. */
  readonly onError: (error: RpcError) => void;
}

interface Context extends AnswerOptions {
  readonly budget: AnswerBudget;
}

/**
 * Answers a parsed body, which is a request or a batch (JSON-RPC 2.0, section 6). Returns the JSON text of the response, or a stream of that text if the answer
 * to a batch is long. Returns undefined if there is nothing to answer, as for a notification.
 */
export async function answerBody(body: unknown, options: AnswerOptions): Promise<string | AnswerStream | undefined> {
  const { endpoint, findHolding, onError } = options;
  if (!Array.isArray(body)) return answerOne(body, { ...options, budget: new AnswerBudget(endpoint, { onError }) });
  if (body.length === 0) return refuse("a batch has at least one member", endpoint);
  if (body.length > rpcBatchMax) {
    return refuse(`the batch has ${body.length} members, at most ${rpcBatchMax}`, endpoint);
  }
  const context = { ...options, budget: new AnswerBudget(endpoint, { onError, findHolding }) };
  const answer = (member: unknown, onAnswered: (part: Part | undefined) => void) =>
    answerMember(member, context, (text) => onAnswered(toPart(text)));
  const parts = await new BatchRun({ ...options, members: body, answer }).run();
  return toAnswer(
    parts.filter((part) => part !== undefined),
    context,
  );
}

function answerOne(member: unknown, context: Context): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    answerMember(member, context, resolve)?.catch(reject);
  });
}

/** Called once with the response; undefined for none. */
type OnAnswered = (response: string | undefined) => void;

/**
 * Answers an invalid member or a refused call at once. Lets `endpoint.submit` answer a call that it takes. In both cases returns undefined. Otherwise runs the
 * call and returns its promise, so that the caller sees a rejection.
 */
function answerMember(member: unknown, context: Context, onAnswered: OnAnswered): Promise<void> | undefined {
  const message = parseMessage(member);
  if (message.kind === "call") return answerCall(message.call, context, onAnswered);
  const error = context.endpoint.toProtocolError("invalidRequest", message.details);
  onAnswered(JSON.stringify(toResponse(message.id, { error })));
  return undefined;
}

/** Answers one call. A notification gets no answer, so it needs no room in the answer. */
function answerCall(call: RpcCall, context: Context, onAnswered: OnAnswered): Promise<void> | undefined {
  const { endpoint, budget, caller, traceParent, hasKeyHeader } = context;
  const { id, method, params } = call;
  if (id !== undefined && budget.isExceeded) {
    onAnswered(budget.toRefusal(id));
    return undefined;
  }
  const isTaken = endpoint.submit?.({ method, params, caller, traceParent, hasKeyHeader }, (outcome) => {
    onAnswered(id === undefined ? undefined : budget.render(id, outcome));
  });
  return isTaken === true ? undefined : runCall(call, context).then(onAnswered);
}

async function runCall({ id, method, params }: RpcCall, context: Context): Promise<string | undefined> {
  const { endpoint, budget, caller } = context;
  if (id === undefined) {
    if (!endpoint.isReadOnly) await endpoint.call({ method, params, caller });
    return undefined;
  }
  let isSkipped = false;
  const isWaiting = (): boolean => {
    isSkipped = budget.isExceeded;
    return !isSkipped;
  };
  const outcome = await endpoint.call({ method, params, caller, isWaiting });
  return isSkipped ? budget.toRefusal(id) : budget.render(id, outcome);
}

function refuse(details: string, endpoint: RpcEndpoint): string {
  return JSON.stringify(toResponse(null, { error: endpoint.toProtocolError("invalidRequest", details) }));
}

/** A response in a batch. A long one is kept as bytes: text may take twice the memory. */
type Part = string | Buffer;

function toPart(text: string | undefined): Part | undefined {
  return text !== undefined && text.length > smallBytesMax ? Buffer.from(text) : text;
}

function toAnswer(parts: readonly Part[], { budget, findHolding }: Context): string | AnswerStream | undefined {
  if (parts.length === 0) return undefined;
  const length = parts.reduce((sum, part) => sum + part.length + 1, 1);
  if (length <= smallBytesMax) return `[${parts.join(",")}]`;
  const stream = new AnswerStream(piecesOf(parts), findHolding());
  budget.countAnswer(stream);
  return stream;
}

/** The JSON array of a batch's responses. Short responses share a buffer, since making a thousand buffers takes longer than joining texts. */
function piecesOf(parts: readonly Part[]): readonly Buffer[] {
  const pieces: Buffer[] = [];
  let text = "[";
  const take = (): Buffer => {
    const piece = Buffer.from(text);
    text = "";
    return piece;
  };
  for (const [index, part] of parts.entries()) {
    if (index > 0) text += ",";
    if (typeof part === "string") text += part;
    else pieces.push(take(), part);
    if (text.length > smallBytesMax) pieces.push(take());
  }
  text += "]";
  pieces.push(take());
  return pieces;
}
