import type { HttpAnswer, HttpSender } from "./http-client.ts";

/** Parameters of an operation, named as in JSON-RPC. `content` is text, or bytes if the API can carry them. */
export interface Params {
  readonly topic?: string;
  readonly groupId?: string;
  readonly content?: string | Uint8Array;
  readonly extensions?: Readonly<Record<string, string>>;
  readonly url?: string;
  readonly subscriptionId?: string;
  readonly offset?: string;
  readonly secret?: string;
  readonly format?: string;
  readonly batch?: number;
  readonly batchMs?: number;
  readonly eventId?: string;
  readonly pageIndex?: number;
  readonly pageSize?: number;
}

/** Outcome of an operation. `raw` is the result as sent; `value` has JSON-RPC's strings "true" and "false" as booleans. */
export type Outcome =
  | { readonly isGood: true; readonly value: unknown; readonly raw: unknown }
  | { readonly isGood: false; readonly code: number; readonly message: string; readonly rpcCode?: number };

/** REST or JSON-RPC, with one of the ways to carry parameters. */
export interface Api {
  readonly name: string;
  readonly kind: "REST" | "JSON-RPC";
  call(operation: string, params?: Params): Promise<Outcome>;
}

type Send = (http: HttpSender, operation: string, params: Params) => Promise<HttpAnswer>;

const formType = { "content-type": "application/x-www-form-urlencoded" };
const jsonType = { "content-type": "application/json" };
/** The parameters of operations by position; others have `topic` and `groupId`. */
export const positionalNames: Readonly<Record<string, readonly (keyof Params)[]>> = {
  publish: ["topic", "groupId", "content", "extensions"],
  subscribe: ["topic", "groupId", "url", "subscriptionId", "offset", "secret"],
  unSubscribe: ["subscriptionId"],
  getEvent: ["eventId", "groupId"],
  getProof: ["eventId", "groupId"],
  list: ["pageIndex", "pageSize", "groupId"],
};

const sends: Readonly<Record<string, Send>> = {
  "REST GET": (http, operation, params) =>
    http.send({ method: "GET", path: `/rest/${operation}?${toQuery(toRestParams(params))}` }),
  "REST POST query": (http, operation, params) =>
    http.send({ method: "POST", path: `/rest/${operation}?${toQuery(toRestParams(params))}` }),
  "REST POST form": (http, operation, params) =>
    http.send({
      method: "POST",
      path: `/rest/${operation}`,
      headers: formType,
      body: new URLSearchParams(toRestParams(params)).toString(),
    }),
  "REST POST JSON": (http, operation, params) =>
    http.send({
      method: "POST",
      path: `/rest/${operation}`,
      headers: jsonType,
      body: JSON.stringify(toRestMembers(params)),
    }),
  "JSON-RPC": (http, method, params) => sendRpc(http, { method, params: toRpcParams(params) }),
  "JSON-RPC positional": (http, method, params) => {
    const named: Readonly<Record<string, unknown>> = toRpcParams(params);
    const names = positionalNames[method] ?? ["topic", "groupId"];
    return sendRpc(http, { method, params: names.map((name) => named[name] ?? null) });
  },
};

export const apiNames = Object.keys(sends);

export function apiOver(http: HttpSender, name: string): Api {
  const send = sends[name];
  if (send === undefined) throw new Error(`there is no API ${name}`);
  const kind = name.startsWith("REST") ? "REST" : "JSON-RPC";
  const read = kind === "REST" ? readRest : readRpc;
  return { name, kind, call: async (operation, params = {}) => read(await send(http, operation, params)) };
}

/** Sends any JSON-RPC message. */
export function sendRpc(http: HttpSender, message: Readonly<Record<string, unknown>>): Promise<HttpAnswer> {
  const body = JSON.stringify({ id: "1", jsonrpc: "2.0", ...message });
  return http.send({ method: "POST", path: "/jsonrpc", headers: jsonType, body });
}

/** Reads a REST answer. An object with `code` and one other member, its message, is a failure. @throws Error if the status is not 200. */
export function readRest(answer: HttpAnswer): Outcome {
  if (answer.status !== 200) throw new Error(`status ${answer.status}: ${answer.text}`);
  const value = answer.json();
  if (!isFailure(value)) return { isGood: true, value, raw: value };
  return { isGood: false, code: value.code, message: value.message };
}

/** Reads a JSON-RPC answer to the request with id "1". @throws Error if it is not a response to that request. */
export function readRpc(answer: HttpAnswer): Outcome {
  // `jsonrpc` and `id` are checked; the members of `error` are trusted.
  const response = answer.json() as { jsonrpc?: unknown; id?: unknown; result?: unknown; error?: RpcError };
  if (answer.status !== 200 || response.jsonrpc !== "2.0" || response.id !== "1") {
    throw new Error(`not a response to the request: ${answer.status} ${answer.text}`);
  }
  const { error, result } = response;
  if (error === undefined)
    return { isGood: true, value: result === "true" || (result === "false" ? false : result), raw: result };
  return { isGood: false, code: error.data.code, message: error.data.message, rpcCode: error.code };
}

interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data: { readonly exceptionTypeName: string; readonly message: string; readonly code: number };
}

function isFailure(value: unknown): value is { code: number; message: string } {
  return typeof value === "object" && value !== null && "code" in value && Object.keys(value).length === 2;
}

/** Encodes a query with encodeURIComponent: a space becomes %20, not +. */
export function toQuery(params: Readonly<Record<string, string>>): string {
  return Object.entries(params)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join("&");
}

function toRestMembers({ extensions, content, ...rest }: Params): Record<string, string | number> {
  if (content instanceof Uint8Array) throw new Error("REST cannot send bytes");
  return { ...rest, ...(content === undefined ? {} : { content }), ...extensions };
}

function toRestParams(params: Params): Record<string, string> {
  return Object.fromEntries(Object.entries(toRestMembers(params)).map(([name, value]) => [name, String(value)]));
}

function toRpcParams({ content, ...rest }: Params): Record<string, unknown> {
  return content === undefined ? rest : { ...rest, content: Buffer.from(content).toString("base64") };
}
