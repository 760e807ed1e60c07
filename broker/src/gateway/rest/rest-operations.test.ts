import { type OperationName, operations, restPathOf } from "@stele/wire";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Broker } from "../../engine/broker.ts";
import { sampleEventId, sampleProofBody, sampleSubscriptionId, sampleTopic } from "../testing/recording-broker.ts";
import { sendRaw } from "../testing/raw-http.ts";
import { type Served, serve } from "../testing/serve.ts";

const url = "http://127.0.0.1:9/cb?x=1&y=ä";
const topic = "a b/c%~\u0080";
const topicInfo = {
  topicName: "hello",
  topicAddress: sampleTopic.address,
  senderAddress: sampleTopic.sender,
  createdTimestamp: sampleTopic.createdTimestamp,
};

interface Row {
  readonly operation: OperationName;
  readonly parameters: Readonly<Record<string, string>>;
  readonly call: unknown;
  readonly result: unknown;
}

// Each operation with all its parameters, and some also with only the required ones.
const rows: readonly Row[] = [
  { operation: "open", parameters: { topic, groupId: "1" }, call: { topic, groupId: "1" }, result: true },
  { operation: "open", parameters: { topic }, call: { topic, groupId: undefined }, result: true },
  { operation: "close", parameters: { topic, groupId: "1" }, call: { topic, groupId: "1" }, result: true },
  { operation: "exist", parameters: { topic, groupId: "" }, call: { topic, groupId: "" }, result: true },
  {
    operation: "publish",
    parameters: { topic, groupId: "1", content: "x=1&y", "svc-format": "json", "svc-": "" },
    call: {
      topic,
      groupId: "1",
      content: Buffer.from("x=1&y"),
      extensions: [
        ["svc-format", "json"],
        ["svc-", ""],
      ],
    },
    result: { topic: "hello", eventId: sampleEventId, status: "SUCCESS" },
  },
  {
    operation: "subscribe",
    parameters: { topic, url },
    call: {
      topic,
      groupId: undefined,
      url,
      format: "RESTful",
      subscriptionId: undefined,
      offset: undefined,
      secret: undefined,
      onSecret: expect.any(Function),
    },
    result: sampleSubscriptionId,
  },
  {
    operation: "subscribe",
    parameters: { topic, groupId: "1", url, subscriptionId: "s", offset: "OFFSET_FIRST", secret: "k" },
    call: {
      topic,
      groupId: "1",
      url,
      format: "RESTful",
      subscriptionId: "s",
      offset: "OFFSET_FIRST",
      secret: "k",
      onSecret: expect.any(Function),
    },
    result: sampleSubscriptionId,
  },
  {
    operation: "unSubscribe",
    parameters: { subscriptionId: "s" },
    call: { subscriptionId: "s" },
    result: true,
  },
  {
    operation: "getEvent",
    parameters: { eventId: sampleEventId, groupId: "1" },
    call: { eventId: sampleEventId, groupId: "1" },
    result: { topic: "hello", content: "eyJuIjoxfQ==", extensions: { "svc-format": "json" }, eventId: sampleEventId },
  },
  {
    operation: "getProof",
    parameters: { eventId: sampleEventId, groupId: "1" },
    call: { eventId: sampleEventId, groupId: "1" },
    result: sampleProofBody,
  },
  {
    operation: "list",
    parameters: { pageIndex: "2", pageSize: "5", groupId: "1" },
    call: { pageIndex: 2, pageSize: 5, groupId: "1" },
    result: { total: 1, pageIndex: 0, pageSize: 10, topicInfoList: [topicInfo] },
  },
  {
    operation: "list",
    parameters: {},
    call: { pageIndex: 0, pageSize: 0, groupId: undefined },
    result: { total: 1, pageIndex: 0, pageSize: 10, topicInfoList: [topicInfo] },
  },
  {
    operation: "list",
    parameters: { pageIndex: "-1", pageSize: "100" },
    call: { pageIndex: -1, pageSize: 100, groupId: undefined },
    result: { total: 1, pageIndex: 0, pageSize: 10, topicInfoList: [topicInfo] },
  },
  {
    operation: "state",
    parameters: { topic, groupId: "1" },
    call: { topic, groupId: "1" },
    result: { ...topicInfo, sequenceNumber: 59, blockNumber: 1124 },
  },
];

type Send = (base: string, row: Row) => Promise<Response>;

/** The parameters of a row, and an unknown one, which the broker ignores in a query and in a form. */
const query = ({ parameters }: Row) => String(new URLSearchParams({ ...parameters, other: "ignored" }));

const transports: Readonly<Record<string, Send>> = {
  "GET with a query": (base, row) => fetch(`${base}${restPathOf(row.operation)}?${query(row)}`),
  "POST with a query": (base, row) => fetch(`${base}${restPathOf(row.operation)}?${query(row)}`, { method: "POST" }),
  "POST with a form": (base, row) =>
    fetch(`${base}${restPathOf(row.operation)}`, { method: "POST", body: new URLSearchParams(query(row)) }),
  "POST with JSON": (base, row) =>
    fetch(`${base}${restPathOf(row.operation)}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(row.parameters),
    }),
};

describe("REST operations", () => {
  it("each have a row in the table of this test", () => {
    expect(new Set(rows.map(({ operation }) => operation))).toEqual(new Set(Object.keys(operations)));
  });

  describe.each(Object.entries(transports))("%s", (_name, send) => {
    let server: Served;
    beforeAll(async () => void (server = await serve()));
    afterAll(async () => server.close());

    it.each(rows)("$operation $parameters", async (row) => {
      const callsBefore = server.calls.length;
      const response = await send(server.url, row);
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
      expect(await response.json()).toEqual(row.result);
      expect(server.calls.slice(callsBefore)).toEqual([{ operation: row.operation, call: row.call }]);
    });
  });

  it("answer with exactly the documented fields", async () => {
    await using server = await serve();
    for (const row of rows) {
      const result: unknown = await (await fetch(`${server.url}${restPathOf(row.operation)}?${query(row)}`)).json();
      expect(operations[row.operation].result.safeParse(result).error).toBeUndefined();
    }
  });

  it("exist answers false for a topic that does not exist", async () => {
    await using server = await serve({ exist: () => Promise.resolve(false) });
    expect(await (await fetch(`${server.url}/rest/exist?topic=a`)).text()).toBe("false");
  });

  it.each([
    "/rest/publish?topic=a&content=c",
    "/rest/state?topic=a",
    "/rest/publish",
    "/rest/nothing",
    "/health/ready",
  ])("answer GET %s with cache-control: no-store", async (path) => {
    await using server = await serve();
    expect((await fetch(`${server.url}${path}`)).headers.get("cache-control")).toBe("no-store");
  });

  it("are below the path of the setting basePath", async () => {
    await using server = await serve({}, { basePath: "stele/" });
    expect(server.url).toMatch(/:[0-9]+\/stele$/);
    expect(await (await fetch(`${server.url}/rest/exist?topic=a`)).text()).toBe("true");
    expect(await (await fetch(`${server.url}/rest/exists`)).text()).toContain("the operations are /stele/rest/open, ");
  });

  it("read only extensions with the configured prefix, and ignore others", async () => {
    await using server = await serve({}, { extensionPrefix: "acme-" });
    await fetch(`${server.url}/rest/publish?topic=a&content=c&acme-x=1&svc-y=2`);
    expect(server.calls[0]?.call).toMatchObject({ extensions: [["acme-x", "1"]] });
  });
});

describe("a secret that the broker generates", () => {
  it("is in a header of the answer, not in its body", async () => {
    const asked: unknown[] = [];
    const subscribe: Broker["subscribe"] = (_caller, { secret, onSecret }) => {
      asked.push(secret);
      onSecret?.("whsec_made");
      return Promise.resolve(sampleSubscriptionId);
    };
    await using server = await serve({ subscribe });
    const response = await fetch(`${server.url}/rest/subscribe?topic=a&url=http://x/&secret=generate`);
    expect(await response.json()).toBe(sampleSubscriptionId);
    expect(response.headers.get("stele-secret")).toBe("whsec_made");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(asked).toEqual(["generate"]);
  });

  it("is in no header if the caller gave a secret", async () => {
    await using server = await serve();
    const response = await fetch(`${server.url}/rest/subscribe?topic=a&url=http://x/&secret=k`);
    expect(response.headers.has("stele-secret")).toBe(false);
  });
});

describe("the header Idempotency-Key", () => {
  it.each([
    ["GET", { "Idempotency-Key": "k-1" }, "k-1"],
    ["POST", { "idempotency-key": '"8e03978e"' }, '"8e03978e"'],
    ["POST", { "idempotency-key": "" }, ""],
    ["GET", {}, undefined],
  ])("becomes the key of a publish: %s with %j gives %j", async (method, headers, key) => {
    await using server = await serve();
    await fetch(`${server.url}/rest/publish?topic=a&content=c`, { method, headers });
    expect(server.calls).toMatchObject([{ operation: "publish", call: { topic: "a", key } }]);
  });

  it("joins repeated values with a comma and a space", async () => {
    await using server = await serve();
    const lines = ["idempotency-key: a", "idempotency-key: b"];
    const head = ["GET /rest/publish?topic=a&content=c HTTP/1.1", "host: localhost", "connection: close", ...lines];
    await sendRaw(server.url, [`${head.join("\r\n")}\r\n\r\n`]);
    expect(server.calls).toMatchObject([{ call: { key: "a, b" } }]);
  });

  it("is not a parameter: REST refuses idempotencyKey, and the error names the header", async () => {
    await using server = await serve();
    const response = await fetch(`${server.url}/rest/publish?topic=a&content=c&idempotencyKey=k`);
    expect(await response.json()).toMatchObject({ code: 200_001, message: expect.stringContaining("header") });
    expect(server.calls).toEqual([]);
  });

  it("is ignored by other operations", async () => {
    await using server = await serve();
    await fetch(`${server.url}/rest/open?topic=a`, { headers: { "idempotency-key": "k" } });
    expect(server.calls).toEqual([{ operation: "open", call: { topic: "a", groupId: undefined } }]);
  });
});

describe("the header traceparent", () => {
  const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

  it.each([
    [{ traceparent: trace }, "", [["svc-traceparent", trace]]],
    [{ traceparent: trace }, "&svc-traceparent=own", [["svc-traceparent", "own"]]],
    [{ traceparent: "00-none" }, "", []],
    [{}, "", []],
  ])("%j with the query %j gives the event the extensions %j", async (headers, query, extensions) => {
    await using server = await serve();
    await fetch(`${server.url}/rest/publish?topic=a&content=c${query}`, { headers });
    expect(server.calls).toMatchObject([{ operation: "publish", call: { extensions } }]);
  });

  it("becomes an extension of a CloudEvent too", async () => {
    await using server = await serve();
    const event = { specversion: "1.0", id: "1", source: "/", type: "t", subject: "a", data: 1 };
    const headers = { "content-type": "application/cloudevents+json", traceparent: trace };
    await fetch(`${server.url}/rest/publish`, { method: "POST", headers, body: JSON.stringify(event) });
    expect(server.calls).toMatchObject([
      { call: { extensions: expect.arrayContaining([["svc-traceparent", trace]]) } },
    ]);
  });
});
