import type { HttpRequest } from "../../harness/http-client.ts";
import { positionalNames, toQuery } from "../../harness/apis.ts";
import { oddChainCall } from "./odd-chain-calls.ts";
import type { OddValues } from "./odd-values.ts";

const names: Readonly<Record<string, readonly string[]>> = {
  open: ["topic", "groupId"],
  close: ["topic", "groupId"],
  exist: ["topic", "groupId"],
  state: ["topic", "groupId"],
  ...positionalNames,
};
const operations = Object.keys(names);
/** A GET query has at most 1,024 bytes, and an escaped character takes up to nine. */
const queryTextMax = 60;
const bodyTextMax = 100_000;
const form = "application/x-www-form-urlencoded";

const contentTypes = [
  "application/json",
  form,
  "text/plain",
  "",
  "application/json; charset=utf-16",
  "application/json;charset",
  ";",
  "a",
  "a/b;c",
  "multipart/form-data; boundary=x",
  "application/json, text/plain",
  "application/xml",
  "APPLICATION/JSON; CHARSET=UTF-8",
  "x".repeat(5000),
];

/** A random HTTP request. */
export function oddRequest(values: OddValues): HttpRequest {
  const { random } = values;
  return random.pick([
    restGet,
    restGet,
    restQuery,
    restForm,
    restJson,
    rpcCall,
    rpcCall,
    rpcCall,
    rpcOdd,
    rpcBatch,
    admin,
    adminOfOne,
    adminOrder,
    tail,
    chain,
    chain,
    chain,
    stray,
  ])(values);
}

const restPath = (operation: string): string => `/rest/${operation === "getProof" ? "proof" : operation}`;

/** The parameters of an operation, some of them omitted, repeated or unknown to it. */
function pairs(values: OddValues, operation: string, lengthMax: number): readonly (readonly [string, string])[] {
  const { random } = values;
  const own = (names[operation] ?? []).filter(() => random.below(8) > 0);
  const odd =
    random.below(4) === 0 ? [random.pick(["svc-x", "svc-", "__proto__", "constructor", "topic", "x", ""])] : [];
  return [...own, ...odd].map((name) => [name, values.parameter(name, lengthMax)] as const);
}

/** A query string; one in ten has invalid escapes, or escapes of invalid UTF-8. */
function query(values: OddValues, operation: string, lengthMax: number): string {
  const { random } = values;
  const text = pairs(values, operation, lengthMax)
    .map(([name, value]) => toQuery({ [name]: wellFormed(value) }))
    .join("&");
  return random.below(10) === 0
    ? `${text}${random.pick(["&%", "%zz", "&=&&==", "&%ff=%c0%80", "%ed%a0%80", "?", ";"])}`
    : text;
}

/** Replaces halves of surrogate pairs, which a URL cannot contain. */
function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, "?");
}

function restGet(values: OddValues): HttpRequest {
  const operation = values.random.pick(operations);
  return { method: "GET", path: `${restPath(operation)}?${query(values, operation, queryTextMax)}` };
}

function restQuery(values: OddValues): HttpRequest {
  const operation = values.random.pick(operations);
  return { method: "POST", path: `${restPath(operation)}?${query(values, operation, 1000)}` };
}

function restForm(values: OddValues): HttpRequest {
  const operation = values.random.pick(operations);
  const headers = { "content-type": values.random.below(5) === 0 ? values.random.pick(contentTypes) : form };
  return { method: "POST", path: restPath(operation), headers, body: query(values, operation, bodyTextMax) };
}

function restJson(values: OddValues): HttpRequest {
  const operation = values.random.pick(operations);
  return {
    method: "POST",
    path: restPath(operation),
    headers: jsonHeaders(values),
    body: jsonObject(values, operation),
  };
}

function jsonHeaders(values: OddValues): Readonly<Record<string, string>> {
  const { random } = values;
  return { "content-type": random.below(10) === 0 ? random.pick(contentTypes) : "application/json" };
}

function jsonObject(values: OddValues, operation: string): string {
  const members = pairs(values, operation, bodyTextMax).map(
    ([name, value]) => `${JSON.stringify(name)}:${member(values, name, value)}`,
  );
  return `{${members.join(",")}}`;
}

function member(values: OddValues, name: string, value: string): string {
  const { random } = values;
  if (random.below(4) === 0) return values.json();
  if (name === "extensions")
    return random.pick([
      () => values.json(),
      () => `{"svc-a":${values.jsonText()}}`,
      () => `{${values.jsonText()}:"x"}`,
    ])();
  if (name.startsWith("page"))
    return random.pick(["0", "10", value.startsWith("-") || /^\d/.test(value) ? value : "1"]);
  return JSON.stringify(value);
}

function rpcParams(values: OddValues, method: string): string {
  const { random } = values;
  if (random.below(10) === 0) return values.json();
  if (random.below(2) === 0) return jsonObject(values, method);
  return `[${(names[method] ?? []).map((name) => member(values, name, values.parameter(name, bodyTextMax))).join(",")}]`;
}

function rpcMember(values: OddValues): string {
  const method = values.random.pick(operations);
  return `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${rpcParams(values, method)}}`;
}

function rpcCall(values: OddValues): HttpRequest {
  return { method: "POST", path: "/jsonrpc", headers: jsonHeaders(values), body: rpcMember(values) };
}

function rpcOdd(values: OddValues): HttpRequest {
  const part = (good: string): string => (values.random.below(2) === 0 ? good : values.json());
  const body = `{"jsonrpc":${part('"2.0"')},"id":${part("1")},"method":${part('"list"')},"params":${values.json()}}`;
  return { method: "POST", path: values.random.pick(["/jsonrpc", "/chain"]), headers: jsonHeaders(values), body };
}

function rpcBatch(values: OddValues): HttpRequest {
  const members = Array.from({ length: values.random.below(6) }, () =>
    values.random.pick([rpcMember, () => values.json()])(values),
  );
  return { method: "POST", path: "/jsonrpc", headers: jsonHeaders(values), body: `[${members.join(",")}]` };
}

function admin(values: OddValues): HttpRequest {
  const { random } = values;
  const path = random.pick([
    "/admin/listSubscription",
    "/admin/skippedEntries",
    "/admin/v1/subscriptions",
    "/admin/v1/subscriptions/pause",
    "/admin/v1/topics",
    "/admin/v1/blocks",
    "/admin/v1/roles",
    `/admin/v1/topics/${encodeURIComponent(wellFormed(values.text(queryTextMax)))}/events`,
    "/health/ready",
    "/access",
    "/health/live",
    "/metrics",
    "/openapi.json",
    "/asyncapi.json",
    "/",
  ]);
  const name = random.pick(["groupId", "limit", "prefix", "owner", "host", "cursor", "__proto__", "x"]);
  const text = random.pick([random.pick(edgeOfLimit), values.text(queryTextMax)]);
  return {
    method: random.pick(["GET", "GET", "POST"]),
    path: `${path}?${toQuery({ [name]: wellFormed(text) })}${random.pick([`&${name}=1&%=%ff`, ""])}`,
  };
}

/** A GET of one subscription, event, topic or role, or of the sessions. */
function adminOfOne(values: OddValues): HttpRequest {
  const { random } = values;
  const segment = (name: string): string => encodeURIComponent(wellFormed(values.parameter(name, queryTextMax)));
  const path = random.pick([
    () => `/admin/v1/subscriptions/${segment("subscriptionId")}`,
    () => `/admin/v1/events/${segment("eventId")}`,
    () => `/admin/v1/topics/${segment("topic")}`,
    () => `/admin/v1/topics/${segment("topic")}/events`,
    () => `/admin/v1/roles/${segment("topic")}`,
    () => "/admin/v1/sessions",
  ])();
  const name = random.pick(["groupId", "proof", "cursor", "before", "limit"]);
  const text = random.pick(["true", random.pick(edgeOfLimit), values.text(queryTextMax)]);
  return { method: "GET", path: `${path}?${toQuery({ [name]: wellFormed(text) })}` };
}

/** An order for one subscription, or for those that a search finds. */
function adminOrder(values: OddValues): HttpRequest {
  const { random } = values;
  const order = random.pick(["pause", "resume", "retry", "skip", "replay"]);
  const one = `/${encodeURIComponent(wellFormed(values.parameter("subscriptionId", queryTextMax)))}`;
  const place = random.pick([
    () => values.json(),
    () => JSON.stringify(values.parameter("offset", bodyTextMax)),
    () => random.pick(['"0000-01-01T00:00:00Z"', '"9999-12-31T23:59:59Z"', '"2026-02-30T00:00Z"', "1e308", "-1"]),
  ])();
  const body = random.below(8) === 0 ? values.json() : `{"${random.pick(["from", "to"])}":${place}}`;
  const search = random.pick(["", "all=true&", "prefix=fuzz&"]);
  const isDryRun = random.below(8) > 0; // An order that is not a dry run may wait a second for an attempt.
  return {
    method: "POST",
    path: `/admin/v1/subscriptions${random.pick([one, ""])}/${order}?${search}dryRun=${isDryRun}`,
    headers: jsonHeaders(values),
    body,
  };
}

/** A tail that the broker refuses, because an accepted one would not end. */
function tail(values: OddValues): HttpRequest {
  const { random } = values;
  const odd = (name: string): Readonly<Record<string, string>> =>
    random.below(2) === 0 ? {} : { [name]: wellFormed(values.parameter(name, queryTextMax)) };
  const refused = random.pick([{ after: "x" }, { after: "1-1" }, { filter: "$.a ==" }, { format: "x" }, { x: "1" }]);
  const query = toQuery({ ...odd("topic"), ...odd("groupId"), ...refused });
  return { method: random.pick(["GET", "HEAD", "POST"]), path: `/tail?${query}` };
}

const edgeOfLimit = ["0", "1", "9999", "10000", "10001", "99999", "-1", "1e3", "0x10", " 1", "１"];

function chain(values: OddValues): HttpRequest {
  const { method, params } = oddChainCall(values);
  const body = `{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${params}}`;
  return { method: "POST", path: "/chain", headers: { "content-type": "application/json" }, body };
}

/** Requests that no transport expects. */
function stray(values: OddValues): HttpRequest {
  const { random } = values;
  const method = random.pick(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] as const);
  const path = random.pick([
    "/rest",
    "/rest/",
    "/rest/open/",
    "/rest//open",
    "/rest/%2e%2e/metrics",
    "/rest/__proto__",
    "/jsonrpc",
    "/chain",
    "/%00",
    "/rest/%ff",
    "/admin",
    `/${"a/".repeat(2000)}`,
    "/rest/publish;x=1",
  ]);
  const type = random.pick(contentTypes);
  const body =
    method === "GET" || method === "HEAD"
      ? {}
      : { body: random.pick([() => values.json(), () => query(values, "publish", 1000)])() };
  return {
    method,
    path,
    ...(type === ""
      ? {}
      : { headers: { "content-type": type, accept: random.pick(["*/*", "text/plain", ";q=,", "a/b;q=2"]) } }),
    ...body,
  };
}
