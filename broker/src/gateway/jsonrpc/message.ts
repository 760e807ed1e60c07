import { isJsonObject } from "../shared/decode-text.ts";
import { type RpcError, toProtocolError } from "./rpc-error.ts";

/** Identifier of a request; what JSON-RPC 2.0, section 4, lets it be. */
export type RpcId = string | number | null;

/** A well-formed request object. `id` is undefined for a notification. */
export interface RpcCall {
  readonly id: RpcId | undefined;
  readonly method: string;
  readonly params: readonly unknown[] | Readonly<Record<string, unknown>>;
}

export interface RpcResponse {
  readonly jsonrpc: "2.0";
  readonly id: RpcId;
  readonly result?: unknown;
  readonly error?: RpcError;
}

export type ParsedMessage =
  | { readonly kind: "call"; readonly call: RpcCall }
  | { readonly kind: "invalid"; readonly response: RpcResponse };

/** Reads one request object (JSON-RPC 2.0, section 4). An invalid one is answered under its id where that can be told, else null. */
export function parseMessage(value: unknown): ParsedMessage {
  if (!isJsonObject(value)) return invalid(null, "a request is a JSON object");
  const { jsonrpc, method, params = {}, id } = value;
  if (id !== undefined && !isId(id)) return invalid(null, '"id" is not a string, a number that JSON keeps, or null');
  const answerId = id ?? null;
  if (jsonrpc !== "2.0") return invalid(answerId, '"jsonrpc" is not "2.0"');
  if (typeof method !== "string") return invalid(answerId, '"method" is not a string');
  if (!Array.isArray(params) && !isJsonObject(params)) return invalid(answerId, '"params" is no object and no array');
  return { kind: "call", call: { id, method, params } };
}

export function toErrorResponse(id: RpcId, error: RpcError): RpcResponse {
  return { jsonrpc: "2.0", id, error };
}

export function toResultResponse(id: RpcId, result: unknown): RpcResponse {
  return { jsonrpc: "2.0", id, result };
}

function invalid(id: RpcId, details: string): ParsedMessage {
  return { kind: "invalid", response: toErrorResponse(id, toProtocolError("invalidRequest", details)) };
}

// An integer past 2^53 would come back as another one, and its caller would wait for ever.
function isId(id: unknown): id is RpcId {
  if (typeof id === "number") return Number.isFinite(id) && (!Number.isInteger(id) || Number.isSafeInteger(id));
  return typeof id === "string" || id === null;
}
