import { rpcOwnErrors } from "@stele/wire";
import { isJsonObject } from "../decode-text.ts";

/** Identifier of a request (JSON-RPC 2.0, section 4). */
export type RpcId = string | number | null;

/** Parameters by position or by name. */
export type RpcParams = readonly unknown[] | Readonly<Record<string, unknown>>;

/** A well-formed request object. `id` is undefined for a notification. */
export interface RpcCall {
  readonly id: RpcId | undefined;
  readonly method: string;
  readonly params: RpcParams;
}

/** `error` of a response (JSON-RPC 2.0, section 5.1). */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** The result of a method, or its error. */
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcError };

/** A result that is JSON text already, so that a long one is not serialised twice. */
export interface RpcText {
  readonly json: string;
}

/** Errors that the protocol names (JSON-RPC 2.0, section 5.1). */
export const rpcErrors = {
  parseError: { code: -32700, message: "Parse error" },
  invalidRequest: { code: -32600, message: "Invalid Request" },
  methodNotFound: { code: -32601, message: "Method not found" },
  invalidParams: rpcOwnErrors.parameterInvalid,
  internalError: rpcOwnErrors.unknown,
} as const;

export type RpcErrorName = keyof typeof rpcErrors;

export interface RpcResponse {
  readonly jsonrpc: "2.0";
  readonly id: RpcId;
  readonly result?: unknown;
  readonly error?: RpcError;
}

export type ParsedMessage =
  | { readonly kind: "call"; readonly call: RpcCall }
  | { readonly kind: "invalid"; readonly id: RpcId; readonly details: string };

/** Reads one request object (JSON-RPC 2.0, section 4). An invalid object keeps its id if that is readable, else gets null. */
export function parseMessage(value: unknown): ParsedMessage {
  if (!isJsonObject(value)) return invalid(null, "a request is a JSON object");
  const { jsonrpc, method, params = [], id } = value;
  if (id !== undefined && !isId(id)) return invalid(null, '"id" is not a string, a safe number, or null');
  const answerId = id ?? null;
  if (jsonrpc !== "2.0") return invalid(answerId, '"jsonrpc" is not "2.0"');
  if (typeof method !== "string") return invalid(answerId, '"method" is not a string');
  if (!Array.isArray(params) && !isJsonObject(params))
    return invalid(answerId, '"params" is neither an object nor an array');
  return { kind: "call", call: { id, method, params } };
}

export function toResponse(id: RpcId, outcome: RpcOutcome): RpcResponse {
  return { jsonrpc: "2.0", id, ...outcome };
}

/** The response as JSON text. */
export function renderResponse(id: RpcId, outcome: RpcOutcome | RpcText): string {
  if (!("json" in outcome)) return JSON.stringify(toResponse(id, outcome));
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${outcome.json}}`;
}

function invalid(id: RpcId, details: string): ParsedMessage {
  return { kind: "invalid", id, details };
}

// An integer past 2^53 would come back as another number, and its caller would wait for ever.
function isId(id: unknown): id is RpcId {
  if (typeof id === "number") return Number.isFinite(id) && (!Number.isInteger(id) || Number.isSafeInteger(id));
  return typeof id === "string" || id === null;
}
