import { describe, expect, it } from "vitest";
import { toOpenApi } from "./openapi.ts";
import { toOpenRpc } from "./openrpc.ts";
import { operationNames, operations, restPathOf } from "./operations.ts";

const options = { version: "0.1.0", basePath: "/stele", extensionPrefix: "svc-" };
const openApi = JSON.parse(JSON.stringify(toOpenApi(options)));
const openRpc = JSON.parse(JSON.stringify(toOpenRpc(options)));

/** The values of all members with a name, anywhere in a document. */
function findMembers(value: unknown, name: string): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => [
    ...(key === name ? [member] : []),
    ...findMembers(member, name),
  ]);
}

describe("the OpenAPI document", () => {
  it("the OpenAPI document has the version of OpenAPI, title, version and server", () => {
    expect(openApi).toMatchObject({ openapi: "3.1.0", info: { title: "Stele", version: "0.1.0" } });
    expect(openApi.servers).toEqual([{ url: "/stele" }]);
  });

  it.each(operationNames)("the OpenAPI document has %s by GET and POST, with the same answers", (name) => {
    const { get, post } = openApi.paths[restPathOf(name)];
    expect(get.responses[200].content["application/json"].schema.oneOf).toHaveLength(2);
    expect(post.responses).toEqual(get.responses);
    expect(Object.keys(post.requestBody.content)).toEqual(["application/json", "application/x-www-form-urlencoded"]);
    const named = get.parameters.map((parameter: { name: string }) => parameter.name);
    const expected = Object.keys(operations[name].restParams.shape);
    expect(named).toEqual(
      name === "publish" ? [...expected, "extensions", "idempotency-key", "traceparent"] : expected,
    );
    for (const parameter of get.parameters) {
      const place = ["idempotency-key", "traceparent"].includes(parameter.name) ? "header" : "query";
      expect(parameter).toMatchObject({ in: place, description: expect.stringMatching(/\.$/), schema: {} });
    }
    expect(post.parameters).toEqual(name === "publish" ? get.parameters.slice(-2) : undefined);
  });

  it("the OpenAPI document says that answers to CloudEvents have other statuses, and which headers an answer may have", () => {
    expect(openApi.info.description).toContain("CloudEvents");
    for (const { get } of operationNames.map((name) => openApi.paths[restPathOf(name)])) {
      expect(Object.keys(get.responses[200].headers)).toEqual(
        expect.arrayContaining(["stele-error-retry", "retry-after"]),
      );
    }
  });

  it("the OpenAPI document bounds tuples by their length: generators of clients fail on `items: false`", () => {
    expect(findMembers(openApi, "prefixItems").length).toBeGreaterThan(0);
    expect(findMembers(openApi, "items")).not.toContain(false);
  });

  it("the OpenAPI document has unique operation identifiers", () => {
    const identifiers = findMembers(openApi.paths, "operationId");
    expect(new Set(identifiers).size).toBe(identifiers.length);
    expect(identifiers.length).toBe(2 * operationNames.length + 11);
  });

  it("the OpenAPI document describes the callbacks of subscribe at the address that GET and POST pass", () => {
    const { get, post } = openApi.paths["/rest/subscribe"];
    const callbacks = [get.callbacks.callback["{$request.query.url}"], post.callbacks.callback["{$request.body#/url}"]];
    const types = ["application/json", "application/cloudevents+json", "application/cloudevents-batch+json", "*/*"];
    for (const { post: call } of callbacks) {
      expect(Object.keys(call.requestBody.content)).toEqual(types);
      expect(call.requestBody.content["application/json"].schema.oneOf[0]).toEqual({
        $ref: "#/components/schemas/Notification",
      });
      expect(call.parameters).toContainEqual(
        expect.objectContaining({ name: "webhook-id", in: "header", required: true }),
      );
    }
    expect(findMembers(openApi.paths, "callbacks")).toHaveLength(2);
  });

  it("the OpenAPI document has only references that resolve", () => {
    const references = findMembers(openApi, "$ref");
    expect(references.length).toBeGreaterThan(0);
    for (const reference of references) {
      const path = String(reference).replace("#/", "").split("/");
      expect(openApi).toHaveProperty(path);
    }
  });

  it("the OpenAPI document lists required parameters, and no path allows null", () => {
    const [content] = openApi.paths["/rest/publish"].get.parameters.filter(
      (parameter: { name: string }) => parameter.name === "content",
    );
    expect(content.required).toBe(true);
    expect(findMembers(openApi.paths, "type")).not.toContainEqual(expect.arrayContaining(["null"]));
    expect(openApi.paths["/rest/list"].get.parameters[0]).toMatchObject({
      required: false,
      schema: { type: "integer" },
    });
    expect(openApi.paths["/rest/publish"].post.requestBody.content["application/json"].schema).toMatchObject({
      required: ["topic", "content"],
      patternProperties: { "^svc-": { type: "string" } },
      properties: { extensions: { type: "object" } },
      additionalProperties: false,
    });
  });
});

describe("the OpenRPC document", () => {
  it("the OpenRPC document has the version of OpenRPC, title, version and every method", () => {
    expect(openRpc).toMatchObject({ openrpc: "1.3.2", info: { title: "Stele", version: "0.1.0" } });
    expect(openRpc.methods.map(({ name }: { name: string }) => name)).toEqual(operationNames);
  });

  it.each(operationNames)("the OpenRPC document has params, result and errors of %s", (name) => {
    const method = openRpc.methods.find((candidate: { name: string }) => candidate.name === name);
    const params = method.params.map((param: { name: string }) => param.name);
    expect(params).toEqual(Object.keys(operations[name].params.shape));
    for (const param of method.params) expect(param.schema).toMatchObject({ description: param.description });
    expect(method.result).toMatchObject({ name: `${name}Result`, schema: {} });
    const catalogued = method.errors.flatMap(({ data }: { data: readonly { code: number }[] }) => data);
    expect(catalogued.length).toBe(operations[name].errors.length);
  });

  it.each(operationNames)(
    "the OpenRPC document lists malformed parameters and unknown errors of %s under JSON-RPC's own codes",
    (name) => {
      const method = openRpc.methods.find((candidate: { name: string }) => candidate.name === name);
      const [refused, ...own] = method.errors;
      expect(refused.code).toBe(-32001);
      expect(refused.data).not.toContainEqual(expect.objectContaining({ code: 200_001 }));
      expect(own).toMatchObject([
        { code: -32602, message: "Invalid params", data: [{ code: 200_001 }] },
        { code: -32603, message: "Internal error", data: [{ code: 200_000 }] },
      ]);
    },
  );

  it.each(operationNames)("the OpenRPC document allows null for each optional parameter of %s", (name) => {
    const method = openRpc.methods.find((candidate: { name: string }) => candidate.name === name);
    for (const { required, schema } of method.params) {
      const types = [schema.type ?? schema.anyOf?.map(({ type }: { type: string }) => type)].flat();
      expect([schema.description, types.includes("null")]).toEqual([schema.description, !required]);
    }
  });

  it("the OpenRPC document says that a boolean result is a string", () => {
    expect(openRpc.methods[0].result.schema).toEqual({ type: "string", enum: ["true", "false"] });
  });

  it("the OpenRPC document lists the parameters of publish in the order of the interface", () => {
    const [publish] = openRpc.methods.filter(({ name }: { name: string }) => name === "publish");
    expect(publish.params.map(({ name, required }: { name: string; required: boolean }) => [name, required])).toEqual([
      ["topic", true],
      ["groupId", false],
      ["content", true],
      ["extensions", false],
      ["idempotencyKey", false],
    ]);
  });
});
