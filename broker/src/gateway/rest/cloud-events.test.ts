import { BrokerError, operations } from "@stele/wire";
import { CloudEvent, emitterFor, HTTP, Mode } from "cloudevents";
import type { FastifyRequest } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { anonymous } from "../../engine/access/caller.ts";
import { TestEngine } from "../../engine/testing/test-engine.ts";
import type { Broker } from "../../engine/broker.ts";
import { Slice, Slices } from "../shared/rpc/slices.ts";
import { sendRaw, toPost } from "../testing/raw-http.ts";
import { serve, type Served } from "../testing/serve.ts";
import { readCloudEvents } from "./cloud-events.ts";
import { toParameterRules } from "./request-parameters.ts";
import { RestReader } from "./rest-reader.ts";

let engine: TestEngine;
let server: Served;
beforeAll(async () => {
  engine = await TestEngine.start();
  for (const topic of ["orders/new", "other"]) await engine.broker.open({ topic, groupId: undefined });
  const { calls } = engine.running;
  const submit: Broker["submit"] = (...given) => calls.submit(...given);
  const submitAll: Broker["submitAll"] = (...given) => calls.submitAll(...given);
  server = await serve({ submit, submitAll });
});
afterAll(async () => {
  await server.close();
  await engine.stop();
});

const event = { id: "7", source: "/shop", type: "com.acme.order", subject: "orders/new" };

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function send(headers: Readonly<Record<string, unknown>>, body: unknown, query = ""): Promise<Answer> {
  const init = { method: "POST", headers: headers as Record<string, string>, body: body as string }; // The library's types are wider than what it sends.
  const response = await fetch(`${server.url}/rest/publish${query}`, init);
  return { status: response.status, body: await response.json() };
}

async function published({ body }: Answer) {
  const { eventId } = body as { eventId: string }; // getEvent checks it.
  const { topic, content, extensions } = await engine.broker.getEvent({ eventId, groupId: undefined });
  return { topic, content: Buffer.from(content).toString(), extensions: Object.fromEntries(extensions) };
}

function refuseCredential(): never {
  throw new BrokerError("credentialRefused");
}

describe("publishing CloudEvents", () => {
  it.each([
    ["binary", HTTP.binary],
    ["structured", HTTP.structured],
  ])("publishes an event that the CloudEvents library sends in %s mode", async (_, encode) => {
    const { headers, body } = encode(new CloudEvent({ ...event, data: { n: 1 }, order: "grün 100%" }));
    const answer = await send(headers, body);
    expect(answer).toMatchObject({ status: 200, body: { topic: "orders/new", status: "SUCCESS" } });
    expect(await published(answer)).toMatchObject({
      topic: "orders/new",
      content: '{"n":1}',
      extensions: {
        "svc-ce-id": "7",
        "svc-ce-source": "/shop",
        "svc-ce-type": "com.acme.order",
        "svc-order": "grün 100%",
      },
    });
  });

  it("answers 200 to an emitter of the library", async () => {
    const statuses: number[] = [];
    const emit = emitterFor(async ({ headers, body }) => void statuses.push((await send(headers, body)).status), {
      mode: Mode.BINARY,
    });
    await emit(new CloudEvent({ ...event, datacontenttype: "text/plain", data: "hello" }));
    expect(statuses).toEqual([200]);
  });

  it.each([
    ["a quoted string, with escapes", '"say \\"hi\\" \\\\ %21"', 'say "hi" \\ !'],
    ["an empty quoted string", '""', ""],
    ["a quotation mark that is not closed", '"half', '"half'],
    ["quotation marks inside", 'a "b" c', 'a "b" c'],
    ["a percent sign that escapes nothing", "100%", "100%"],
    ["UTF-8 without escapes", Buffer.from("grün €").toString("latin1"), "grün €"],
    ["Latin-1", "gr\u00fcn", "grün"],
  ])("reads %s in a header of a binary event", async (_, order, expected) => {
    const binary = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": '"t"' };
    const answer = await send({ ...binary, "ce-subject": '"other"', "ce-order": order }, "x");
    expect(await published(answer)).toMatchObject({
      topic: "other",
      extensions: { "svc-ce-type": "t", "svc-order": expected },
    });
  });

  it.each([
    [{ "ce-id": "1\r\nce-id: 2" }, "the header 'ce-id' is given more than once"],
    [{ "content-type": "text/csv\r\ncontent-type: text/plain" }, "the header 'content-type' is given more than once"],
    [
      { "content-type": "application/cloudevents+json\r\ncontent-type: text/plain" },
      "the header 'content-type' is given more than once",
    ],
    [
      { "content-type": "text/csv", "ce-datacontenttype": "text/plain" },
      "the headers 'content-type' and 'ce-datacontenttype' differ",
    ],
  ])("refuses an event with a content type or an attribute in two headers: %j", async (headers, reason) => {
    const binary = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", ...headers };
    const answer = await sendRaw(server.url, [toPost("/rest/publish?topic=other", Buffer.from("x"), binary)]);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer.replaceAll('\\"', "'")).toContain(`not a CloudEvent: ${reason}`);
  });

  it("publishes the bytes of content unchanged, whatever its character set", async () => {
    const binary = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", "ce-subject": "other" };
    const type = "text/csv; charset=iso-8859-1";
    const answer = await send({ ...binary, "content-type": type }, Buffer.from("grün", "latin1"));
    const { eventId } = answer.body as { eventId: string }; // As in `published`.
    const { content, extensions } = await engine.broker.getEvent({ eventId, groupId: undefined });
    expect(Buffer.from(content).toString("latin1")).toBe("grün");
    expect(extensions).toContainEqual(["svc-format", type]);
  });

  it("publishes to the topic in the query, even if the event has a subject", async () => {
    const { headers, body } = HTTP.structured(new CloudEvent({ ...event, data: "x" }));
    expect(await published(await send(headers, body, "?topic=other"))).toMatchObject({ topic: "other" });
  });

  it("publishes all events of a batch, or none", async () => {
    const type = { "content-type": "application/cloudevents-batch+json" };
    const one = { specversion: "1.0", ...event, data: 1 };
    const good = await send(type, JSON.stringify([one, { ...one, id: "8", subject: "other" }]));
    expect(good).toMatchObject({ status: 200, body: [{ topic: "orders/new" }, { topic: "other", status: "SUCCESS" }] });
    const before = await engine.broker.state({ topic: "other", groupId: undefined });
    const bad = await send(
      type,
      JSON.stringify([
        { ...one, subject: "other" },
        { ...one, subject: "none" },
      ]),
    );
    expect(bad).toMatchObject({ status: 404, body: { code: 100_101 } });
    expect(await engine.broker.state({ topic: "other", groupId: undefined })).toEqual(before);
  });

  it("reads no further event of a batch once the connection has ended", async () => {
    const headers = { "content-type": "application/cloudevents-batch+json" };
    const body = Buffer.from(JSON.stringify([{ specversion: "1.0", ...event, data: 1 }]));
    const reader = new RestReader(new Map(), toParameterRules(operations.publish, "svc-"), headers);
    const raw = { headersDistinct: {} };
    const events = readCloudEvents({ headers, body, raw } as FastifyRequest, reader, "svc-"); // It reads no other field.
    if (events.kind !== "batch") throw new Error("not a batch");
    const left = new AbortController();
    const read = events.read(new Slice(new Slices(), { principal: anonymous, signal: left.signal }));
    left.abort();
    await expect(read).rejects.toMatchObject({ code: 200_300 });
  });

  it("gives two publishes with the same Idempotency-Key the same answer", async () => {
    const { headers, body } = HTTP.structured(new CloudEvent({ ...event, data: "once" }));
    const answers = [1, 2].map(() => send({ ...headers, "idempotency-key": "k" }, body));
    const [first, second] = await Promise.all(answers);
    expect(second).toEqual(first);
  });

  it("refuses an attribute that the broker sets itself, or a malformed time, and publishes nothing", async () => {
    const before = await engine.broker.state({ topic: "other", groupId: undefined });
    const taken = { ...event, subject: "other", specversion: "1.0", data: 1 };
    const headers = { "content-type": "application/cloudevents+json" };
    const { status, body } = await send(headers, JSON.stringify({ ...taken, sequence: "99" }));
    expect([status, body]).toEqual([400, { code: 200_001, message: expect.stringContaining("attribute sequence ") }]);
    const binary = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", "ce-subject": "other" };
    expect(await send({ ...binary, "ce-time": "not-a-time" }, "x")).toMatchObject({
      status: 400,
      body: { code: 200_001 },
    });
    expect(await engine.broker.state({ topic: "other", groupId: undefined })).toEqual(before);
  });

  it("answers 401 with www-authenticate Bearer if a credential is missing", async () => {
    await using other = await serve({ submit: refuseCredential });
    const { headers, body } = HTTP.structured(new CloudEvent({ ...event, data: "x" }));
    const init = { method: "POST", headers: headers as Record<string, string>, body: body as string }; // As in `send`.
    const answer = await fetch(`${other.url}/rest/publish`, init);
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  });

  it.each<[string, Readonly<Record<string, string>>, string, number]>([
    ["a body that is not JSON", { "content-type": "application/cloudevents+json" }, "{", 400],
    ["an event that is not a JSON object", { "content-type": "application/cloudevents+json" }, "[]", 400],
    ["a batch that is not a JSON array", { "content-type": "application/cloudevents-batch+json" }, "{}", 400],
    ["no attributes", { "content-type": "application/cloudevents+json" }, "{}", 400],
    [
      "too many events",
      { "content-type": "application/cloudevents-batch+json" },
      JSON.stringify(Array.from({ length: 1_001 }, () => ({ specversion: "1.0", ...event, data: 1 }))),
      400,
    ],
    ["no topic", { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t" }, "x", 400],
    [
      "an Idempotency-Key for a batch",
      { "content-type": "application/cloudevents-batch+json", "idempotency-key": "k" },
      "[]",
      400,
    ],
    [
      "compressed content",
      {
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-source": "s",
        "ce-type": "t",
        "ce-subject": "other",
        "content-encoding": "gzip",
      },
      "x",
      400,
    ],
    [
      "no content",
      { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", "ce-subject": "other" },
      "",
      400,
    ],
  ])(
    "refuses a request with %s, and answers with a status and an error code",
    async (_, headers, ...[body, status]) => {
      const answer = await send(headers, body);
      expect(answer).toMatchObject({ status, body: { code: expect.any(Number) } });
    },
  );

  it.each(["application/cloudevents+avro", "application/cloudevents-batch+protobuf", "application/cloudevents"])(
    "refuses the format %s, with or without attributes in headers, with an error that names it",
    async (type) => {
      const binary = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", "ce-subject": "other" };
      for (const headers of [{}, binary]) {
        expect(await send({ ...headers, "content-type": type }, "x")).toEqual({
          status: 400,
          body: { code: 200001, message: expect.stringContaining(`content type "${type}" is neither`) },
        });
      }
    },
  );

  it.each<[string, string, Readonly<Record<string, string>>, number]>([
    ["a malformed content type", "/rest/publish", { "content-type": "json" }, 400],
    ["an unknown path", "/rest/publish/", {}, 404],
    [
      "too many headers",
      "/rest/publish",
      Object.fromEntries(Array.from({ length: 257 }, (_, n) => [`x-${n}`, "1"])),
      431,
    ],
    ["headers that are too long", "/rest/publish", { "ce-order": "x".repeat(33_000) }, 431],
  ])(
    "refuses a request with %s before a handler runs, and answers with a status and an error code",
    async (_, path, ...[headers, status]) => {
      const binary = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", "ce-subject": "other" };
      const answer = await sendRaw(server.url, [toPost(path, Buffer.from("x"), { ...binary, ...headers })]);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} .*"code":200001`, "s"));
    },
  );
});
