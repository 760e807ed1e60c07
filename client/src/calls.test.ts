import { operationNames, toAdminOpenApi, toOpenApi } from "@stele/wire";
import { describe, expect, it } from "vitest";
import { AdminClient, Stele } from "./index.ts";

const settings = { version: "0", basePath: "", extensionPrefix: "svc-" };
const documented = new Set([
  ...operations(toOpenApi(settings).paths, ""),
  ...operations(toAdminOpenApi(settings).paths, "/admin/v1"),
  ...operationNames.map((name) => `POST /jsonrpc ${name}`),
]);

function operations(paths: object, base: string): readonly string[] {
  return Object.entries(paths).flatMap(([path, methods]: [string, object]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${base}${path}`),
  );
}

/** Makes a call that the broker refuses. Returns the method and the path of its only request, and the JSON-RPC methods in the body. */
async function sentBy(call: (stele: Stele) => Promise<unknown>): Promise<string> {
  const sent: string[] = [];
  const stele = new Stele({
    url: "http://broker.example",
    fetch: async (input, init) => {
      const request = new Request(input, init);
      const { method } = request;
      const path = new URL(request.url).pathname;
      const body: unknown = path === "/jsonrpc" ? await request.json() : [];
      const rpc = [body].flat().map((call) => ` ${(call as { method: string }).method}`); // A JSON-RPC call.
      sent.push(`${method} ${path}${rpc.join("")}`);
      return Response.json({ code: 100702, message: "not allowed" }, { status: 403 });
    },
  });
  await expect(call(stele)).rejects.toMatchObject({ code: 100702 });
  expect(sent).toHaveLength(1);
  return sent[0] ?? "";
}

const first = (rows: AsyncGenerator): Promise<unknown> => rows.next();
const search = { host: "down.example" };

const calls: readonly (readonly [string, (stele: Stele) => Promise<unknown>])[] = [
  ["POST /jsonrpc open", (stele) => stele.open("t")],
  ["POST /jsonrpc close", (stele) => stele.close("t")],
  ["POST /jsonrpc exist", (stele) => stele.exist("t")],
  ["POST /jsonrpc state", (stele) => stele.state("t")],
  ["POST /jsonrpc list", (stele) => stele.list()],
  ["POST /jsonrpc list", (stele) => first(stele.topics())],
  ["POST /jsonrpc publish", (stele) => stele.publish("t", "x")],
  [
    "POST /jsonrpc publish",
    async (stele) => {
      const [outcome] = await stele.publishMany([{ topic: "t", content: "x" }]);
      if (outcome?.status === "failed") throw outcome.error;
    },
  ],
  ["POST /jsonrpc getEvent", (stele) => stele.getEvent("x")],
  ["POST /jsonrpc getProof", (stele) => stele.getProof("x")],
  ["GET /access", (stele) => stele.rights()],
  ["GET /health/ready", (stele) => stele.readiness()],
  ["GET /tail", (stele) => stele.subscribe("t").opened()],
  ["GET /tail", (stele) => stele.subscribeCloudEvents("t").opened()],
  ["GET /admin/v1/subscriptions", (stele) => first(stele.admin.subscriptions())],
  ["GET /admin/v1/subscriptions/{id}", (stele) => stele.admin.subscription("{id}")],
  ["POST /admin/v1/subscriptions/{id}/skip", (stele) => first(stele.admin.order({ name: "skip" }, "{id}"))],
  ["POST /admin/v1/subscriptions/pause", (stele) => first(stele.admin.order({ name: "pause" }, search))],
  ["GET /admin/v1/subscriptions/{id}/dead-letters", (stele) => first(stele.admin.deadLetters("{id}"))],
  ["GET /admin/v1/sessions", (stele) => first(stele.admin.sessions())],
  ["GET /admin/v1/sessions/{id}", (stele) => stele.admin.session("{id}")],
  ["GET /admin/v1/topics", (stele) => first(stele.admin.topics())],
  ["GET /admin/v1/topics/{topic}", (stele) => stele.admin.topic("{topic}")],
  ["GET /admin/v1/topics/{topic}/events", (stele) => first(stele.admin.events("{topic}"))],
  ["GET /admin/v1/events/{eventId}", (stele) => stele.admin.event("{eventId}")],
  ["GET /admin/v1/groups", (stele) => first(stele.admin.groups())],
  ["GET /admin/v1/blocks", (stele) => first(stele.admin.blocks())],
  ["GET /admin/v1/groups/{groupId}/skipped-entries", (stele) => first(stele.admin.skippedEntriesOf("{groupId}"))],
  ["GET /admin/skippedEntries", (stele) => stele.admin.skippedEntries()],
  ["GET /admin/v1/nodes", (stele) => first(stele.admin.nodes())],
  ["GET /admin/v1/nodes", (stele) => stele.admin.nodeHistory()],
  ["GET /admin/v1/roles", (stele) => first(stele.admin.roles())],
  ["PUT /admin/v1/roles/{name}", (stele) => stele.admin.setRole("{name}", [])],
  ["DELETE /admin/v1/roles/{name}", (stele) => stele.admin.deleteRole("{name}")],
  ["GET /admin/v1/figures", (stele) => stele.admin.figures()],
];

/** Methods that send nothing themselves. */
const silent: ReadonlySet<string> = new Set(["constructor", "admin"]);

describe("every call sends a request of the documented interface", () => {
  it.each(calls)("a call sends %s, which is documented", async (expected, call) => {
    const sent = decodeURIComponent(await sentBy(call));
    expect(sent).toBe(expected);
    expect(documented).toContain(expected);
  });

  it.each([
    ["Stele", Stele.prototype],
    ["AdminClient", AdminClient.prototype],
  ])("the table of calls has every method of %s", (_name, prototype) => {
    const names = Object.getOwnPropertyNames(prototype).filter((name) => !silent.has(name));
    const texts = calls.map(([, call]) => String(call));
    expect(names.filter((name) => !texts.some((text) => text.includes(`.${name}(`)))).toEqual([]);
  });
});
