import { BrokerError, type OperationName, operations } from "@stele/wire";
import { describe, expect, it } from "vitest";
import { sampleEventId, sampleProofBody, sampleSubscriptionId, sampleTopic } from "../testing/recording-broker.ts";
import { answer, post } from "../testing/rpc-client.ts";
import { serve } from "../testing/serve.ts";

const topicInfo = {
  topicName: "hello",
  topicAddress: sampleTopic.address,
  senderAddress: sampleTopic.sender,
  createdTimestamp: sampleTopic.createdTimestamp,
};

interface Row {
  readonly method: OperationName;
  readonly params: Readonly<Record<string, unknown>>;
  readonly call: unknown;
  readonly result: unknown;
}

const topic = "a b/c\u0080";
const url = "http://127.0.0.1:9/cb";

// Calls of each method. Params are in the order of the parameters, for positional calls.
const rows: readonly Row[] = [
  { method: "open", params: { topic, groupId: "1" }, call: { topic, groupId: "1" }, result: "true" },
  { method: "open", params: { topic }, call: { topic, groupId: undefined }, result: "true" },
  { method: "close", params: { topic, groupId: null }, call: { topic, groupId: undefined }, result: "true" },
  { method: "exist", params: { topic, groupId: "1" }, call: { topic, groupId: "1" }, result: "true" },
  {
    method: "publish",
    params: { topic, groupId: "1", content: "AP8K", extensions: { "svc-format": "json", x: "" } },
    call: {
      topic,
      groupId: "1",
      content: Buffer.from([0, 255, 10]),
      extensions: [
        ["svc-format", "json"],
        ["x", ""],
      ],
    },
    result: { topic: "hello", eventId: sampleEventId, status: "SUCCESS" },
  },
  {
    method: "publish",
    params: { topic, groupId: "1", content: "" },
    call: { topic, groupId: "1", content: Buffer.alloc(0), extensions: [] },
    result: { topic: "hello", eventId: sampleEventId, status: "SUCCESS" },
  },
  {
    method: "publish",
    params: { topic, groupId: "1", content: "", extensions: null, idempotencyKey: "k-1" },
    call: { topic, groupId: "1", content: Buffer.alloc(0), extensions: [], key: "k-1" },
    result: { topic: "hello", eventId: sampleEventId, status: "SUCCESS" },
  },
  {
    method: "subscribe",
    params: { topic, groupId: "1", url, subscriptionId: "s", offset: "OFFSET_FIRST", secret: "k" },
    call: {
      topic,
      groupId: "1",
      url,
      format: "JsonRPC",
      subscriptionId: "s",
      offset: "OFFSET_FIRST",
      secret: "k",
    },
    result: sampleSubscriptionId,
  },
  {
    method: "unSubscribe",
    params: { subscriptionId: "s" },
    call: { subscriptionId: "s" },
    result: "true",
  },
  {
    method: "getEvent",
    params: { eventId: sampleEventId, groupId: "1" },
    call: { eventId: sampleEventId, groupId: "1" },
    result: { topic: "hello", content: "eyJuIjoxfQ==", extensions: { "svc-format": "json" }, eventId: sampleEventId },
  },
  {
    method: "getProof",
    params: { eventId: sampleEventId, groupId: "1" },
    call: { eventId: sampleEventId, groupId: "1" },
    result: sampleProofBody,
  },
  {
    method: "list",
    params: { pageIndex: 2, pageSize: 5, groupId: "1" },
    call: { pageIndex: 2, pageSize: 5, groupId: "1" },
    result: { total: 1, pageIndex: 0, pageSize: 10, topicInfoList: [topicInfo] },
  },
  {
    method: "list",
    params: { pageIndex: 1.5 },
    call: { pageIndex: 1.5, pageSize: 0, groupId: undefined },
    result: { total: 1, pageIndex: 0, pageSize: 10, topicInfoList: [topicInfo] },
  },
  {
    method: "state",
    params: { topic, groupId: "1" },
    call: { topic, groupId: "1" },
    result: { ...topicInfo, sequenceNumber: 59, blockNumber: 1124 },
  },
];

describe("JSON-RPC methods", () => {
  it("has a row here for every method", () => {
    expect(new Set(rows.map(({ method }) => method))).toEqual(new Set(Object.keys(operations)));
  });

  it.each(rows)("$method with named params: $params", async ({ method, params, call, result }) => {
    await using server = await serve();
    const request = { id: "7", jsonrpc: "2.0", method, params: { ...params, other: "ignored" } };
    expect(await answer(server.url, request)).toEqual({ jsonrpc: "2.0", id: "7", result });
    expect(server.calls).toEqual([{ operation: method, call }]);
  });

  it.each(rows)("$method with positional params: $params", async ({ method, params, call, result }) => {
    await using server = await serve();
    const request = { id: 7, jsonrpc: "2.0", method, params: Object.values(params) };
    expect(await answer(server.url, request)).toEqual({ jsonrpc: "2.0", id: 7, result });
    expect(server.calls).toEqual([{ operation: method, call }]);
  });

  it("exist answers the string false for a topic that does not exist", async () => {
    await using server = await serve({ exist: () => Promise.resolve(false) });
    const request = { id: "1", jsonrpc: "2.0", method: "exist", params: { topic: "a" } };
    expect(await answer(server.url, request)).toMatchObject({ result: "false" });
  });

  it("answers -32001 'topic not exist' for a topic that does not exist", async () => {
    const failure = new BrokerError("topicNotExist", { details: '"a" in group "1"' });
    await using server = await serve({ state: () => Promise.reject(failure) });
    const request = { id: "1", jsonrpc: "2.0", method: "state", params: { topic: "a" } };
    expect(await answer(server.url, request)).toEqual({
      jsonrpc: "2.0",
      id: "1",
      error: {
        code: -32001,
        message: "topic not exist",
        data: { exceptionTypeName: "BrokerException", message: 'topic not exist: "a" in group "1"', code: 100101 },
      },
    });
  });

  it("returns the hints of an error after its details", async () => {
    const failure = new BrokerError("urlInvalid", { details: "it cannot be parsed", hints: ["Give an absolute URL."] });
    await using server = await serve({ subscribe: () => Promise.reject(failure) });
    const request = { id: "1", jsonrpc: "2.0", method: "subscribe", params: { topic: "a", url: "b" } };
    const message = "url is malformed or not allowed: it cannot be parsed. Give an absolute URL.";
    expect(await answer(server.url, request)).toMatchObject({ error: { code: -32001, data: { message } } });
  });

  it("answers an unexpected error with -32603, logs it once, and hides its text", async () => {
    const defect = new TypeError("secret");
    await using server = await serve({ state: () => Promise.reject(defect) });
    const request = { id: "1", jsonrpc: "2.0", method: "state", params: { topic: "a" } };
    expect(await answer(server.url, request)).toMatchObject({
      error: { code: -32603, message: "Internal error", data: { code: 200000, message: "unknown error" } },
    });
    expect(server.errors).toEqual([{ message: "request failed", fields: { operation: "state", error: defect } }]);
  });
});

it("adds the header traceparent as an extension to each publish of a batch, unless the publish has that extension", async () => {
  await using server = await serve();
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const params = { topic: "a", groupId: "1", content: "" };
  const batch = [params, { ...params, extensions: { "svc-traceparent": "own" } }].map((one, id) => {
    return { jsonrpc: "2.0", id, method: "publish", params: one };
  });
  const headers = { "content-type": "application/json", traceparent };
  await fetch(`${server.url}/jsonrpc`, { method: "POST", headers, body: JSON.stringify(batch) });
  expect(server.calls).toMatchObject([
    { call: { extensions: [["svc-traceparent", traceparent]] } },
    { call: { extensions: [["svc-traceparent", "own"]] } },
  ]);
});

describe("a publish with the header Idempotency-Key", () => {
  const headers = { "content-type": "application/json", "idempotency-key": "k" };
  const call = { jsonrpc: "2.0", id: 1, method: "publish" };
  const params = { topic: "a", content: "" };

  it("is refused, and the error names the parameter idempotencyKey", async () => {
    await using server = await serve();
    const response = await post(server.url, [{ ...call, params }], headers);
    const message: unknown = expect.stringContaining("parameter idempotencyKey");
    expect(await response.json()).toMatchObject([{ error: { data: { code: 200_001, message } } }]);
    expect(server.calls).toEqual([]);
  });

  it("is published under the parameter if it has both", async () => {
    await using server = await serve();
    await post(server.url, { ...call, params: { ...params, idempotencyKey: "own" } }, headers);
    expect(server.calls).toMatchObject([{ call: { key: "own" } }]);
  });
});
