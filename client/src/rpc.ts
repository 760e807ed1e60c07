import {
  findRestError,
  type HttpAnswer,
  type HttpTransport,
  isRecord,
  toForeignAnswerError,
} from "./http-transport.ts";
import type { CallOptions } from "./options.ts";
import { SteleError, toFailure, toProtocolError } from "./stele-error.ts";

export interface RpcCall {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** The result of one call, or its error. */
export type RpcOutcome = { readonly result: unknown } | { readonly error: SteleError };

const headers = { "content-type": "application/json", accept: "application/json" };

/** Sends one JSON-RPC call and returns its result. @throws SteleError with the code of the failure. */
export async function callRpc(transport: HttpTransport, call: RpcCall, options: CallOptions): Promise<unknown> {
  const answer = await send(transport, JSON.stringify(toMessage(call, 0)), options);
  const outcome = isRecord(answer.value) ? toOutcome(answer.value) : undefined;
  if (outcome === undefined) throw toForeignAnswerError(transport.base, answer, "no JSON-RPC response");
  if ("error" in outcome) throw outcome.error;
  return outcome.result;
}

/** Reads the result of a method that returns an object. `base` is the server's address. @throws SteleError for anything else. */
export function toObject(base: string, result: unknown): object {
  if (isRecord(result)) return result;
  throw toProtocolError(base, "a result that is not an object");
}

/** Sends several calls in one request. The outcomes are in the order of the calls. @throws SteleError if the request fails, or a call has no response. */
export async function callRpcBatch(
  transport: HttpTransport,
  calls: readonly RpcCall[],
  options: CallOptions,
): Promise<readonly RpcOutcome[]> {
  const answer = await send(transport, JSON.stringify(calls.map(toMessage)), options);
  const { value } = answer;
  if (isRecord(value)) {
    const outcome = toOutcome(value);
    if (outcome !== undefined && "error" in outcome) throw outcome.error;
  }
  const responses = Array.isArray(value) ? value.filter(isRecord) : [];
  const byId = new Map(responses.map((response) => [response["id"], toOutcome(response)]));
  return calls.map((_call, index) => {
    const outcome = byId.get(index);
    if (outcome === undefined) throw toForeignAnswerError(transport.base, answer, "no response to one call of a batch");
    return outcome;
  });
}

/** Reads a boolean, which the broker's JSON-RPC interface writes as text. `base` is the server's address. @throws SteleError for anything else. */
export function toBoolean(base: string, result: unknown): boolean {
  if (result === "true" || result === true) return true;
  if (result === "false" || result === false) return false;
  throw toProtocolError(base, "a result that is not a boolean");
}

async function send(transport: HttpTransport, body: string, options: CallOptions): Promise<HttpAnswer> {
  const answer = await transport.ask({ url: `${transport.base}/jsonrpc`, method: "POST", headers, body }, options);
  const exception = findRestError(answer);
  if (exception !== undefined) throw exception;
  return answer;
}

function toMessage({ method, params }: RpcCall, id: number): unknown {
  return { jsonrpc: "2.0", id, method, params };
}

function toOutcome(response: Readonly<Record<string, unknown>>): RpcOutcome | undefined {
  if (response["jsonrpc"] !== "2.0") return undefined;
  const { error, result } = response;
  if (error === undefined) return { result };
  if (!isRecord(error)) return undefined;
  const { data } = error;
  if (isRecord(data) && typeof data["code"] === "number" && typeof data["message"] === "string") {
    return { error: toFailure({ code: data["code"], message: data["message"] }) };
  }
  return { error: new SteleError(String(error["message"]), { retry: false }) };
}
